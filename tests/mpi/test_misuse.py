"""Each mistake ends the job within 10 s with one error that says what happened, where, and what to do."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, Result, environment, python

# what the error must contain, and the exact place
MISTAKES = {
    "undeclared": ["Undeclared field 'temprature'; the job declares 'u'", "simulation 0, step 2"],
    "shape": ["Field 'u' has shape (4, 6), but (6, 4) was put", "simulation 0, step 2. Put the whole field (C order, ",
              "or declare the shape that is put. Put a part of it as a block, with its start; the blocks of "
              "all ranks must cover the field in every step."],
    "dtype": ["Field 'u' has dtype float32, but int32 was put", "simulation 0, step 2"],
    "twice": ["Field 'u' was put twice in one step", "Solver rank 2 (group 0, its rank 0), simulation 0, step 2"],
    "not-put": ["Field 'u' was not put", "simulation 0, step 2"],
    "overlap": ["The blocks of field 'u' that ranks", "overlap", "simulation 0, step 2"],
    "hole": ["have 18 elements, the field has 24: they leave a hole", "simulation 0, step 2"],
    "no-finalize": ["MPI_Finalize was called before mpidata_finalize", "Call mpidata_finalize at the end"],
    "outside": ["A block of field 'u' covers 3 to 4 in dimension 0, the field has 0 to 3", "group 0, its rank 1)"],
    "before-init": ["mpidata_put was called before mpidata_init", "Solver rank"],  # both ranks: either comes first
    "parameter": ["Unknown parameter 'alhpa'; the job declares 'alpha'", "simulation 0, step 2"],
    "end-of-one": ["The ranks of a group make different numbers of steps", "simulation 0, step ", "Call mpidata_step"],
    "fail-of-one": ["The ranks of a group make different numbers of steps", "simulation 0, step ", "Call mpidata_step"],
    "last-step-of-one": ["The ranks of a group make different numbers of steps", "simulation 0, step 40"],
    "next-without-step": ["Field 'u' was put, but no mpidata_step followed", "simulation 0, step 2"],
}  # fmt: skip


def assert_failed(result: Result, *sentences: str) -> None:
    assert result.status == 1, result.logs()
    assert result.summary["status"] == "failed"
    for sentence in sentences:
        assert sentence in result.summary["error"], result.summary["error"]
        assert sentence in " ".join(result.output.split()), result.output
    assert "Traceback" not in result.output and "has died" not in result.output, result.output


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_a_solver_fail_the_job(folder: JobFolder, compiled: Callable[[str], Path], mistake: str) -> None:
    program = [str(compiled("misuse")), mistake]
    folder.job(
        trainers=DRAIN,
        solvers={"ranks_per_group": 2, "program": program},
    )
    result = folder.run(timeout=30)
    assert_failed(result, *MISTAKES[mistake])


def test_early_mpi_finalize_outside_a_job_is_reported(compiled: Callable[[str], Path]) -> None:
    command = [compiled("misuse"), "late-finalize"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    sentence = "mpidata: MPI_Finalize was called before mpidata_finalize. Step 3. Call mpidata_finalize at the end"
    assert done.returncode == 0 and sentence in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("ranks", "mistake"),
    [
        (1, "time"),
        *(pytest.param(ranks, "time", marks=pytest.mark.full) for ranks in (2, 4)),
        pytest.param(2, "time-of-one", marks=pytest.mark.ulfm),
    ],
)
def test_step_time_that_is_not_finite_fails_the_try(
    folder: JobFolder, compiled: Callable[[str], Path], ranks: int, mistake: str
) -> None:
    folder.job(
        trainers=DRAIN,
        solvers={
            "ranks_per_group": ranks,
            "program": [str(compiled("misuse")), mistake],
            "retries": 2,
            "spares": 3 * (mistake == "time-of-one"),
        },
    )
    result = folder.run(timeout=90)
    assert result.status == 0, result.logs()
    (failed,) = result.summary["set_aside"]
    how = "raised a time that is not finite" if mistake == "time-of-one" else "made step 2 at the time nan"
    assert (failed["simulation"], failed["tries"], failed["cause"], failed["how"]) == (0, 3, "raised", how)
    # If only one rank has such a time, the trainers have parts of a sample, which are dropped with the group.
    assert result.summary["simulations"]["complete"] == 3
    assert result.summary["lost_groups"] == (3 if mistake == "time-of-one" else 0)


def test_capacity_smaller_than_the_batch_fails_the_job(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    folder.job(
        trainers={"program": python("trainers/drain.py", 33)},
        solvers={"program": [str(compiled("misuse")), "none"]},
        buffer={"policy": "fifo", "capacity": 32},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "buffer.capacity is 32, but batches of 33 samples need at least 33")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("MPIStreamDataset(batch_size=0)", "batch_size=0 is not a positive integer. Give 1 or more, or leave it out"),
        pytest.param("MPIStreamDataset(8, device='nowhere')", "is not a torch device: ", marks=pytest.mark.full),
        pytest.param("DataLoader([1, 2], batch_size=0)", "batch_size=0 is not a positive", marks=pytest.mark.full),
        pytest.param("DataLoader([1, 2], device='nowhere')", "is not a torch device: ", marks=pytest.mark.full),
        pytest.param("FileDataset('none/*.npy', 8)", "none/*.npy", marks=pytest.mark.full),
        pytest.param("LocalSGD(None, None)", "mpidata.LocalSGD: ", marks=pytest.mark.full),
        pytest.param("ParameterServer(None, None)", "model is of type NoneType. Give a", marks=pytest.mark.full),
        pytest.param(
            "init_process_group(), mpidata.init_process_group()",
            "is already initialized. Call mpidata.init",
            marks=pytest.mark.full,
        ),
    ],
)
def test_wrong_argument_in_the_first_call_of_a_trainer_fails_the_job(
    folder: JobFolder, call: str, sentence: str
) -> None:
    (folder.path / "train.py").write_text(f"import mpidata\nmpidata.{call}\n")
    folder.job(
        trainers={"program": [sys.executable, "train.py"]},
        solvers={"program": python("solvers/python/puts_numbers.py", 5, 4, 6)},
        **({} if "Stream" in call else {"loaders": {"ranks": 1}}),
    )
    result = folder.run(timeout=60)
    assert_failed(result, sentence, "(train.py line 2)")


def test_nan_in_a_parameter_file_is_refused(folder: JobFolder) -> None:
    (folder.path / "points.csv").write_text("alpha\n0.5\nnan\n0.25\n")
    folder.job(
        trainers=DRAIN,
        solvers={"program": ["true"]},
        parameters={"sampler": "file", "path": "points.csv"},
    )
    result = folder.run(timeout=30)
    assert result.status == 2
    assert "points.csv" in result.output and "alpha" in result.output and "nan" in result.output
    assert result.run is None and "Traceback" not in result.output


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (["sh", "-c", "kill -SEGV $$"], "SIGSEGV"),
        (["sh", "-c", "echo out of ideas; exit 3"], "exit status 3"),
        (["sh", "-c", "exit 0"], ""),
    ],
    ids=["crash", "exit-3", "never-joins"],
)
def test_solver_that_ends_before_joining_fails_the_job(folder: JobFolder, program: list[str], sentence: str) -> None:
    folder.job(trainers=DRAIN, solvers={"program": program})
    result = folder.run(timeout=30)
    assert_failed(result, sentence)
    if "ideas" in program[-1]:
        assert "out of ideas" in result.output


def test_hole_among_short_steps_is_reported_with_its_step(folder: JobFolder) -> None:
    """The group agrees on many steps at once, and the error names the right one."""
    folder.job(
        trainers=DRAIN,
        solvers={"ranks_per_group": 2, "program": python("solvers/mistakes/leaves_hole.py")},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "have 12 elements, the field has 24: they leave a hole", "simulation 0, step 137")


def test_too_many_blocks_in_a_step_fail_the_job(folder: JobFolder) -> None:
    """A solver that continues regardless gets no error about a hole."""
    folder.job(
        trainers=DRAIN,
        solvers={"program": python("solvers/mistakes/puts_too_many_blocks.py")},
        fields={"u": {"dtype": "float32", "shape": [4100]}},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "at most 4096 blocks in one step", "simulation 0, step 2", "Put larger blocks")


def test_forked_child_of_a_trainer_does_not_end_the_job(folder: JobFolder) -> None:
    folder.job(
        trainers={"program": python("trainers/mistakes/forks.py")},
        solvers={"program": python("solvers/python/puts_numbers.py", 5, 4, 6)},
    )
    result = folder.run(timeout=30)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    log = result.log("trainer")
    assert "children [1, 0]" in log and log.count("The stream cannot be used in a forked process") == 1, log


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        pytest.param(
            "bool",
            "Field 'u' has dtype float32, but bool was put. Solver rank 2 (group 0, its rank 0), ",
            marks=pytest.mark.full,
        ),
        ("ragged", "Field 'u': list was put, which NumPy cannot convert ("),
        (
            "masked",
            "MaskedArray was put, which has 20 masked elements, and int64",
        ),
        (
            "huge",
            "Field 'u': an int of 2001 bits was put, which float32 does not hold. Solver rank 2 (group 0, its ",
        ),
        pytest.param(
            "shape",
            "Field 'u' has shape (4, 6), but (4, 5) was put. Solver rank 2 (group 0, ",
            marks=pytest.mark.full,
        ),
    ],
)
def test_mistake_caught_by_a_python_program_still_fails_the_job(folder: JobFolder, bad: str, sentence: str) -> None:
    program = python("solvers/mistakes/catches.py", bad, "finite", "Exception")
    folder.job(trainers=DRAIN, solvers={"program": program})
    result = folder.run(timeout=60)
    assert_failed(result, sentence, "simulation 0, step 2")


@pytest.mark.parametrize("kind", ["caught", pytest.param("uncaught", marks=pytest.mark.ulfm), "function"])
def test_step_time_of_python_that_is_not_finite_fails_the_try(folder: JobFolder, kind: str) -> None:
    caught = "Exception" if kind == "caught" else "ZeroDivisionError"
    program: dict[str, object] = {"program": python("solvers/mistakes/catches.py", "good", "nan", caught)}
    if kind == "function":
        program = {"function": "functions.failing.time_not_finite:simulate"}
    folder.job(
        trainers=DRAIN,
        solvers={**program, "retries": 1, "spares": 2 * (kind == "uncaught")},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    (failed,) = result.summary["set_aside"]
    assert failed["simulation"] == 0 and failed["tries"] == 2 and failed["cause"] == "raised", failed
    assert result.summary["simulations"]["complete"] == 3
