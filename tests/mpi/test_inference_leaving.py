"""Open questions are answered when a simulation is cancelled, abandoned or over, or when a rank leaves."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import JobFolder, python

NET = """
import time

def answer(inputs):
    x = inputs["x"]
    time.sleep(0.01)
    return dict(y=2 * x, sums=x.double().sum(1))
"""


def write(folder: JobFolder, program: list[str], trainer: list[str], groups: int = 1, ranks: int = 1) -> None:
    folder.write(net=NET)
    folder.job(
        trainers={"program": trainer},
        solvers={"groups": groups, "ranks_per_group": ranks, "program": program},
        inference={"function": "net:answer"},
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 8},
        fields={"u": {"dtype": "float32", "shape": [5]}},
    )


@pytest.mark.full
def test_questions_of_cancelled_simulations_are_answered(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    write(folder, [str(compiled("asks_and_leaves")), "cancelled"], python("trainers/cancels.py", "drawn", 3))
    result = folder.run()
    assert result.status == 0 and result.summary["simulations"]["cancelled"] == 4, result.logs()


@pytest.mark.full
def test_next_and_finalize_wait_for_answers(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    write(folder, [str(compiled("asks_and_leaves"))], python("trainers/drain.py"), groups=2)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["failed"] == 2, result.summary


def test_infer_raises_when_the_simulation_is_cancelled(folder: JobFolder) -> None:
    """Both ranks of a group raise after the same step."""
    folder.write(
        asks="""
import mpidata
import numpy as np

rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    step = 0
    try:
        while True:
            mpidata.solver.infer({"x": np.ones((2, 3))}, {"y": ((2, 3), "float64")})
            if rank == 0:
                simulation.put(u=np.full(5, step, np.float32))
            try:
                simulation.step(step)
            except mpidata.solver.SimulationCancelled:
                mpidata.solver.infer({"x": np.ones((2, 3))}, {"y": ((2, 3), "float64")})
                raise AssertionError("infer does not raise")
            step += 1
    except mpidata.solver.SimulationCancelled:
        print("=> cancelled after", step, flush=True)
"""
    )
    write(folder, ["python", "asks.py"], python("trainers/cancels.py", "drawn", 3), ranks=2)
    result = folder.run()
    assert result.status == 0 and result.summary["simulations"]["cancelled"] == 4, result.logs()


@pytest.mark.full
@pytest.mark.parametrize(
    ("asks", "ranks"),
    [("True", 1), ("True", 2), ("rank == 1", 2), ("rank == 0", 2), ("rank == 1 and step == 5", 3), ("step >= rank", 3)],
)
def test_job_that_stops_before_weights_are_published_ends_cleanly(folder: JobFolder, asks: str, ranks: int) -> None:
    """Also if only some ranks of a group ask, or each first at another step, while the others are in their steps."""
    folder.write(
        train="import mpidata, time\nstream = mpidata.MPIStreamDataset(batch_size=2)\ntime.sleep(2)\n",
        asks=f"""
import time

import mpidata
import numpy as np

rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    step = 0
    while True:
        if {asks}:
            mpidata.solver.infer({{"x": np.ones((2, 3))}}, {{"y": ((2, 3), "float64")}})
            raise AssertionError("there was an answer")
        if rank == 0:
            simulation.put(u=np.full(5, step, np.float32))
        simulation.step(step)
        step += 1
        time.sleep(0.001)
""",
    )
    write(folder, ["python", "asks.py"], ["python", "train.py"], groups=3 - ranks if ranks < 3 else 1, ranks=ranks)
    folder.write(net="def answer(inputs, weights):\n    return inputs\n")
    result = folder.run()
    assert result.summary["status"] == "stopped", result.logs()
    assert "overdue" not in result.log("scheduler") and "Error" not in result.logs(), result.logs()
