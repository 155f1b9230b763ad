"""Failures that end a job with inference ranks: the error says what to do, and nothing waits forever."""

import signal

import psutil
import pytest
from jobs import DRAIN, JobFolder, ranks_that, variables_of
from waiting import wait_until

ASKS = """
import mpidata
import numpy as np

rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    for step in range(10):
        if rank == 0:
            open("asking", "w").close()
        if rank == 0 or {all_ask}:
            mpidata.solver.infer({{"x": np.ones((2, 3))}}, {{"y": ((2, 3), "float64")}})
        if rank == 0:
            simulation.put(u=np.full(5, step, np.float32))
        simulation.step(step)
"""


def write(folder: JobFolder, net: str, *, all_ask: bool = True, ranks: int = 1, **inference: object) -> None:
    folder.write(net=net, asks=ASKS.format(all_ask=all_ask))
    folder.job(
        trainers=DRAIN,
        solvers={"groups": 1, "ranks_per_group": ranks, "program": ["python", "asks.py"], "retries": 1},
        inference={"function": "net:answer", **inference},
        fields={"u": {"dtype": "float32", "shape": [5]}},
    )


def solver_ranks(folder: JobFolder) -> list[psutil.Process]:
    """Return the Python process of each solver rank, rank 0 of the group first."""
    found = ranks_that(folder.path, lambda one: one.cmdline()[1:] == ["asks.py"])
    return sorted(found, key=lambda process: int(variables_of(process)["OMPI_COMM_WORLD_RANK"]))


@pytest.mark.full
@pytest.mark.parametrize(
    ("net", "said"),
    [
        ("import of_nobody\ndef answer(inputs):\n    pass\n", "No module named 'of_nobody'"),
        ("raise ValueError('not today')\ndef answer(inputs):\n    pass\n", "ValueError: not today"),
        ("def answer(inputs):\n    pass\ndel answer\n", "module 'net' has no function 'answer'"),
    ],
)
def test_function_that_cannot_be_imported_fails_the_job(folder: JobFolder, net: str, said: str) -> None:
    write(folder, net)
    result = folder.run()
    assert result.status != 0 and said in result.output, result.logs()


@pytest.mark.full
@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("os.kill(os.getpid(), 9)", "that crashes. Inference rank 0, the first one, was killed by SIGKILL"),
        ("os.kill(os.getpid(), 11)", "that crashes. Inference rank 0, the first one, was killed by SIGSEGV"),
        ("os._exit(3)", "that ends its rank. Inference rank 0, the first one, ended with exit status 3"),
    ],
)
def test_function_that_kills_each_rank_fails_the_job(folder: JobFolder, ends: str, said: str) -> None:
    write(folder, f"import os\ndef answer(inputs):\n    {ends}\n")
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    assert result.status != 0 and f"inference.function, net:answer, {said}" in result.output, result.logs()
    assert "inference-0.log" in result.output


@pytest.mark.full
def test_function_that_hangs_each_rank_fails_the_job(folder: JobFolder) -> None:
    write(folder, "import time\ndef answer(inputs):\n    time.sleep(1000)\n", timeout_s=2)
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    assert result.status != 0 and "inference.timeout_s" in result.output, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("all_ask", [False, True])
def test_death_of_a_group_rank_ends_the_wait_for_an_answer(folder: JobFolder, all_ask: bool) -> None:
    """The group is lost while its rank 0 waits, and its simulation runs again."""
    waits = "    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    net = f"import os, time\ndef answer(inputs):\n{waits}    return {{'y': inputs['x']}}\n"
    write(folder, net, all_ask=all_ask, ranks=2)
    process = folder.start()
    wait_until(lambda: (folder.path / "asking").exists(), timeout_s=40, alive=process)
    ranks = solver_ranks(folder)
    ranks[1].send_signal(signal.SIGKILL)
    wait_until(lambda: not ranks[0].is_running() or ranks[0].status() == "zombie", timeout_s=20, alive=process)
    (folder.path / "go").touch()
    result = folder.finish(process, 90, 0)
    assert result.status == 0 and result.summary["lost_groups"] == 1, result.logs()


@pytest.mark.full
def test_spare_cannot_replace_a_lost_rank_without_fault_tolerance(folder: JobFolder) -> None:
    write(folder, "import os\ndef answer(inputs):\n    os.kill(os.getpid(), 9)\n", spares=1)
    folder.change_job(launch={"fault_tolerance": False})
    result = folder.run(timeout=60)
    assert result.status != 0 and "Inference rank 0" in result.output, result.logs()
