"""A simulation whose try has failed is run again, also by a group that has samples of the first try under way."""

import pytest
from jobs import JobFolder

COUNT, STEPS = 12, 12

# Fails the first try of each simulation after 1 to 8 steps, as a function of one rank does that raises.
SOLVE = """
import os
import numpy as np
import mpidata
group = mpidata.solver.group()
u = np.empty((32, COLUMNS), np.float32)
for simulation in mpidata.solver.simulations():
    first = not os.path.exists(f"tried-{simulation.id}-{group.rank}")
    open(f"tried-{simulation.id}-{group.rank}", "w").close()
    for step in range(STEPS):
        if first and step == 1 + simulation.id % 8:
            simulation._rank.fail(simulation._rank.library.mpidata_fail_try, "raised the first time")
            break
        u[...] = 100 * simulation.id + step
        simulation.put_block("u", u, [32 * group.rank, 0])
        simulation.step(step)
"""
# Slow, so that the samples of a try wait to be received.
TRAIN = """
import time
from numpy_stream import stream
seen = set()
for batch in stream(2):
    time.sleep(0.004)
    for i in range(2):
        value = 100 * int(batch["simulation"][i]) + int(batch["step"][i])
        assert (batch["u"][i] == value).all() and value not in seen
        seen.add(value)
print("distinct", len(seen))
"""


@pytest.mark.parametrize(
    "groups, columns",
    [(2, 600), *(pytest.param(*sizes, marks=pytest.mark.full) for sizes in [(1, 600), (1, 60), (2, 60)])],
)
def test_tries_of_one_simulation_do_not_mix(folder: JobFolder, groups: int, columns: int) -> None:
    solve = SOLVE.replace("COLUMNS", str(columns)).replace("STEPS", str(STEPS))
    folder.write(solve=solve, train=TRAIN)
    folder.job(
        solvers={"groups": groups, "ranks_per_group": 2, "program": ["python", "solve.py"]},
        parameters={"count": COUNT, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [64, columns]}},
        buffer={"policy": "fifo", "capacity": 8},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert f"distinct {COUNT * STEPS}" in result.log("trainer")
    assert [entry["how"] for entry in result.summary["retries"]] == ["raised the first time"] * COUNT
    assert result.summary["simulations"] == {"requested": COUNT, "complete": COUNT, "failed": 0}
