"""Each mistake ends the job within 10 s with one sentence that says what, where and what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import PROGRAMS, JobFolder, Result

# what the sentence must say, and the exact place
MISTAKES = {
    "undeclared": ["Undeclared field 'temprature'; the job declares 'u'", "simulation 0, step 2"],
    "shape": ["Field 'u' has shape (4, 6), but (6, 4) was put", "simulation 0, step 2"],
    "dtype": ["Field 'u' has dtype float32, but int32 was put", "simulation 0, step 2"],
    "twice": ["Field 'u' was put twice in one step", "Solver rank 2 (group 0, its rank 0), simulation 0, step 2"],
    "not-put": ["Field 'u' was not put", "simulation 0, step 2"],
    "overlap": ["The blocks of field 'u' that ranks", "overlap", "simulation 0, step 2"],
    "hole": ["have 18 elements, the field has 24: they leave a hole", "simulation 0, step 2"],
    "no-finalize": ["MPI_Finalize was called before mpidata_finalize", "Call mpidata_finalize at the end"],
    "outside": ["A block of field 'u' covers 3 to 4 in dimension 0, the field has 0 to 3", "group 0, its rank 1)"],
    "before-init": ["mpidata_put was called before mpidata_init", "Solver rank"],  # both ranks: either comes first
    "parameter": ["Unknown parameter 'alhpa'; the job declares 'alpha'", "simulation 0, step 2"],
    "time": ["mpidata_step: time is nan", "simulation 0, step 2"],
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
def test_mistake_of_a_solver(folder: JobFolder, compiled: Callable[[str], Path], mistake: str) -> None:
    program = [str(compiled("misuse")), mistake]
    folder.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py")]},
        solvers={"ranks_per_group": 2, "program": program},
    )
    result = folder.run(timeout=30)
    assert_failed(result, *MISTAKES[mistake])


def test_capacity_smaller_than_the_batch(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    folder.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py"), "33"]},
        solvers={"program": [str(compiled("misuse")), "none"]},
        buffer={"policy": "fifo", "capacity": 32},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "buffer.capacity is 32, but batches of 33 samples need at least 33")


def test_nan_in_a_parameter_file(folder: JobFolder) -> None:
    (folder.path / "points.csv").write_text("alpha\n0.5\nnan\n0.25\n")
    folder.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py")]},
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
def test_a_solver_that_ends_before_it_joins(folder: JobFolder, program: list[str], sentence: str) -> None:
    folder.job(trainers={"program": ["python", str(PROGRAMS / "drain.py")]}, solvers={"program": program})
    result = folder.run(timeout=30)
    assert_failed(result, sentence)
    if "ideas" in program[-1]:
        assert "out of ideas" in result.output


def test_a_hole_among_short_steps(folder: JobFolder) -> None:
    """The group agrees on many of them at once, and says which one it was."""
    folder.write(
        solve=(
            "import numpy as np\nimport mpidata\n"
            "rank = mpidata.solver.group().Get_rank()\n"
            "for simulation in mpidata.solver.simulations():\n"
            "    for step in range(200):\n"
            "        if (rank, step) != (1, 137):\n"
            "            simulation.put_block('u', np.zeros((2, 6), np.float32), (2 * rank, 0))\n"
            "        simulation.step(step)\n"
        )
    )
    folder.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py")]},
        solvers={"ranks_per_group": 2, "program": ["python", "solve.py"]},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "have 12 elements, the field has 24: they leave a hole", "simulation 0, step 137")


def test_more_blocks_than_a_step_may_have(folder: JobFolder) -> None:
    """A solver that goes on regardless is not told of a hole."""
    folder.write(
        solve=(
            "import contextlib\nimport numpy as np\nimport mpidata\n"
            "for simulation in mpidata.solver.simulations():\n"
            "    for step in range(4):\n"
            "        width = 1 if step == 2 else 5\n"
            "        for start in range(0, 4100, width):\n"
            "            with contextlib.suppress(Exception):\n"
            "                simulation.put_block('u', np.zeros(width, np.float32), (start,))\n"
            "        with contextlib.suppress(Exception):\n"
            "            simulation.step(step)\n"
        )
    )
    folder.job(
        trainers={"program": ["python", str(PROGRAMS / "drain.py")]},
        solvers={"program": ["python", "solve.py"]},
        fields={"u": {"dtype": "float32", "shape": [4100]}},
    )
    result = folder.run(timeout=30)
    assert_failed(result, "at most 4096 blocks in one step", "simulation 0, step 2", "Put larger blocks")


FORK = """
import os, sys
import mpidata
stream = mpidata.MPIStreamDataset(batch_size=1)
children = []
for end in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        if end == 0:
            next(iter(stream))
        sys.exit()  # where mpi4py calls MPI_Finalize
count = sum(1 for _ in stream)
print("children", [os.waitpid(child, 0)[1] >> 8 for child in children])
"""
SOLVE = """
import numpy as np
from mpidata.solver import simulations
for simulation in simulations():
    for step in range(5):
        simulation.put(u=np.zeros((4, 6), np.float32))
        simulation.step(float(step))
"""


def test_a_forked_child_of_a_trainer_ends_by_itself(folder: JobFolder) -> None:
    folder.write(train=FORK, solver=SOLVE)
    folder.job(solvers={"program": ["python", "solver.py"]})
    result = folder.run(timeout=30)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    log = result.log("trainer")
    assert "children [1, 0]" in log and log.count("The stream cannot be used in a forked process") == 1, log
