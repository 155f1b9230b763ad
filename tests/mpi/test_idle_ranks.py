"""Ranks that receive nothing sleep longer and longer, so that many of them leave the cores to others."""

import re
import time
from pathlib import Path

import psutil
import pytest
from jobs import JobFolder, ranks_that, variables_of
from waiting import wait_until

pytestmark = pytest.mark.full

_TRAIN = "from numpy_stream import stream\nfor sample in stream():\n    pass\n"
_TRAIN_MATES = "import mpidata\nfor batch in mpidata.MPIStreamDataset(batch_size=1):\n    pass\n"
_SLOW = """
import time
def simulate(alpha):
    open("begun", "w").close()
    time.sleep(12)
    yield {"u": [[alpha] * 6] * 4}
"""
_LOOK_S = 3.0
# Pauses of 20 ms, and what Python does five or ten times a second.
_MOST = 75


def _switches(process: psutil.Process) -> dict[str, int]:
    """Return how often each thread has gone to sleep."""
    counts = {}
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text(), re.MULTILINE)
        counts[task.name] = int(found[1]) if found else 0
    return counts


@pytest.mark.parametrize("ranks_per_replica", [1, 2])
def test_idle_ranks_rarely_wake_up(folder: JobFolder, ranks_per_replica: int) -> None:
    folder.write(train=_TRAIN if ranks_per_replica == 1 else _TRAIN_MATES, slow=_SLOW)
    trainers = {"ranks": ranks_per_replica, "ranks_per_replica": ranks_per_replica}
    space = {"count": 1, "space": {"alpha": [0, 1]}}
    folder.job(trainers=trainers, solvers={"function": "slow:simulate", "groups": 2}, parameters=space)
    job, began = folder.start(), time.monotonic()
    wait_until((folder.path / "begun").exists, 60, alive=job)
    time.sleep(4.0)  # the ranks have waited for as long
    ranks = ranks_that(folder.path, lambda one: one.name() != "mpidata-rank" and "MPIDATA_PULSE" in variables_of(one))
    of = {int(variables_of(one)["OMPI_COMM_WORLD_RANK"]): one for one in ranks}
    assert sorted(of) == list(range(3 + ranks_per_replica)), ranks
    before = {rank: _switches(one) for rank, one in of.items()}
    time.sleep(_LOOK_S)
    after = {rank: _switches(one) for rank, one in of.items()}
    rates = {rank: max(after[rank][task] - before[rank].get(task, 0) for task in after[rank]) for rank in of}
    result = folder.finish(job, 60, began)
    assert result.status == 0, result.logs()
    assert max(rates.values()) < _MOST * _LOOK_S, rates
