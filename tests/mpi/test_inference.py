"""Solvers ask inference ranks: each row of an answer matches its question, whoever answers or dies."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from inference_campaign import NET, draw, run_draw
from jobs import DRAIN, MPIFH, PROGRAMS, JobFolder, Result, config, environment, mpicc, python, ranks_that, variables_of
from waiting import wait_until

DOUBLE = "def answer(inputs):\n    x = inputs['x']\n    return dict(y=2 * x, sums=x.double().sum(1))\n"


def write_job(
    folder: JobFolder, seconds: float = 0.0, solvers: dict[str, Any] | None = None, **inference: object
) -> None:
    torch.save({"factor": torch.tensor([1.0, 2.0, 3.0])}, folder.path / "net.pt")
    folder.write(net=NET.format(seconds=seconds))
    folder.job(
        trainers=DRAIN,
        solvers={"program": python("solvers/python/asks.py"), "groups": 2, **(solvers or {})},
        inference={"function": "net:answer", "weights": "net.pt", **inference},
        fields={"u": {"dtype": "float32", "shape": [3]}},
    )


def inference_ranks(folder: Path) -> list[psutil.Process]:
    """Return the Python process of each inference rank that lives, in order."""
    found = ranks_that(folder, lambda process: "mpidata.inference" in " ".join(process.cmdline()))
    return sorted(found, key=lambda process: int(variables_of(process)["OMPI_COMM_WORLD_RANK"]))


def check_complete(result: Result) -> None:
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["simulations"]["complete"] == 4
    assert result.summary["samples"]["received"] == 4 * 20


def test_each_row_of_an_answer_matches_its_question(folder: JobFolder) -> None:
    write_job(folder, solvers={"ranks_per_group": 2, "groups": 1})
    result = folder.run()
    check_complete(result)
    assert result.summary["inference"] == {"joined": 1, "lost": 0}


@pytest.mark.full
def test_questions_share_a_call_of_the_function(folder: JobFolder) -> None:
    write_job(folder, 0.01, {"groups": 4}, ranks=2, batch=8, wait_ms=5)
    check_complete(folder.run())


@pytest.mark.full
def test_c_program_can_keep_several_questions_open(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    write_job(folder, ranks=2)
    folder.write(net=DOUBLE)
    folder.change_job(solvers={"groups": 2, "program": [str(compiled("asks"))]})
    result = folder.run()
    assert result.status == 0 and result.summary["samples"]["received"] == 4 * 10, result.logs()


@pytest.mark.full
def test_fortran_program_gets_answers(folder: JobFolder, require: Callable[[str], str]) -> None:
    write_job(folder, ranks=1)
    folder.write(net=DOUBLE)
    few, source = MPIFH, PROGRAMS / "solvers/fortran/asks.F90"
    subprocess.run([mpicc(), "-c", few / "mpifh.c", "-o", "mpifh.o"], cwd=folder.path, env=environment(), check=True)
    command = [require("gfortran"), f"-I{few}", *config("--fflags"), source, "mpifh.o", "-o", "asks"]
    subprocess.run([*command, *config("--flibs")], cwd=folder.path, env=environment(), check=True)
    folder.change_job(solvers={"groups": 1, "program": ["./asks"]})
    result = folder.run()
    assert result.status == 0 and result.summary["samples"]["received"] == 4 * 10, result.logs()


@pytest.mark.full
def test_spawned_solvers_get_answers_through_a_trainer(folder: JobFolder) -> None:
    write_job(folder, solvers={"start": "spawn", "groups": 2, "ranks_per_group": 2}, ranks=2)
    check_complete(folder.run(timeout=90))


@pytest.mark.full
def test_lost_inference_rank_is_replaced_by_a_spawned_one(folder: JobFolder) -> None:
    """It answers solvers that started with the job through a trainer."""
    write_job(folder, 0.05, ranks=1)
    process = folder.start()
    wait_until(lambda: '"inference_joined"' in events(folder), timeout_s=40, alive=process)
    inference_ranks(folder.path)[0].kill()
    result = folder.finish(process, 90, 0)
    folder.assert_nothing_left()
    check_complete(result)
    assert result.summary["inference"] == {"joined": 2, "lost": 1}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_answers_are_correct_despite_random_deaths(folder: JobFolder, tmp_path: Path, seed: int) -> None:
    print(draw(seed))
    print(run_draw(folder, tmp_path, seed))


@pytest.mark.full
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_spare_answers_the_questions_of_a_lost_rank(folder: JobFolder, way: signal.Signals) -> None:
    write_job(folder, 0.05, ranks=1, spares=1, timeout_s=3, start_timeout_s=60)
    process = folder.start()
    wait_until(lambda: '"inference_joined"' in events(folder), timeout_s=40, alive=process)
    wait_until(lambda: len(inference_ranks(folder.path)) == 2, alive=process)
    inference_ranks(folder.path)[0].send_signal(way)
    result = folder.finish(process, 90, 0)
    folder.assert_nothing_left()
    check_complete(result)
    assert result.summary["inference"]["lost"] == 1, result.logs()


@pytest.mark.full
def test_inference_rank_death_without_fault_tolerance_fails_the_job(folder: JobFolder) -> None:
    write_job(folder, 0.05, ranks=1)
    folder.change_job(launch={"fault_tolerance": False})
    process = folder.start()
    wait_until(lambda: '"inference_joined"' in events(folder), timeout_s=40, alive=process)
    inference_ranks(folder.path)[0].kill()
    result = folder.finish(process, 60, 0)
    folder.assert_nothing_left()
    assert result.status != 0 and "Inference rank 0 (rank 4) was killed by SIGKILL" in result.output, result.logs()


def events(folder: JobFolder) -> str:
    """Return the text of events.jsonl."""
    found = list(folder.path.glob("runs/job/1/events.jsonl"))
    return found[0].read_text() if found else ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing (net.py line 3)"),
        ("return {'y': inputs['x'][:1]}", "Return a row for each row of the inputs"),
        ("return {'y': inputs['x'].double()}", "its dtype is torch.float64, but solvers request torch.float32"),
        ("return {'z': inputs['x']}", "returned no 'y', which a solver requests. The names that it returned: 'z'"),
        ("return inputs['x']", "returned an object of Tensor"),
        ("import sys; sys.exit(3)", "has ended its rank with sys.exit()"),
    ],
)
def test_a_function_that_fails_ends_the_job(folder: JobFolder, function: str, said: str) -> None:
    write_job(folder)
    rest = "{'y': x * 1, 's': x.sum(1).double(), 'n': inputs['n'].long()}"
    folder.write(net=f"def answer(inputs):\n    if len(x := inputs['x']) > 1:\n        {function}\n    return {rest}\n")
    result = folder.run()
    assert result.status != 0 and said in result.output, result.logs()
    assert ("The traceback is in the log" in result.output) == ("raise" in function), result.logs()


@pytest.mark.full
@pytest.mark.parametrize(
    ("before", "dtype", "said"),
    [
        ("", "'float33'", "infer, output 'y': 'float33' is not a dtype"),
        ("mpidata.solver.group()\n{ask}", "'float32'", "before the first simulation."),
    ],
)
def test_error_of_a_wrong_infer_call_names_its_place(folder: JobFolder, before: str, dtype: str, said: str) -> None:
    write_job(folder)
    ask = f"mpidata.solver.infer({{'x': np.zeros((2, 3))}}, {{'y': ((2, 3), {dtype})}})\n"
    folder.change_job(solvers={"groups": 1, "program": ["python", "asks.py"]})
    folder.write(
        asks=f"import mpidata, numpy as np\n{before.format(ask=ask)}\n"
        f"for simulation in mpidata.solver.simulations():\n    {ask}"
    )
    result = folder.run()
    assert result.status != 0 and said in result.output and "simulation -1" not in result.output, result.logs()


@pytest.mark.full
def test_question_with_mismatched_rows_fails_the_job(folder: JobFolder) -> None:
    write_job(folder)
    folder.write(
        asks="import mpidata, numpy as np\n"
        "for simulation in mpidata.solver.simulations():\n"
        "    mpidata.solver.infer({'x': np.zeros((2, 3))}, {'y': ((3, 3), 'float32')})\n"
    )
    folder.change_job(solvers={"groups": 1, "program": ["python", "asks.py"]})
    result = folder.run()
    assert result.status != 0 and "Array 'y' of a question has 3 rows, the first one has 2" in result.output, (
        result.logs()
    )
