"""Small samples share messages where that delays nothing that is waited for."""

import pytest
from jobs import JobFolder

SOLVE = """
import sys
import time
from pathlib import Path
import numpy as np
import mpidata

u, sent = np.zeros(int(sys.argv[1]), np.float32), 0

def until_there():
    end = time.monotonic() + 30
    while sum(1 for _ in Path("there").iterdir()) < sent:
        assert time.monotonic() < end, f"of {sent} samples not all have come"
        time.sleep(0.001)

for simulation in mpidata.solver.simulations():
    for step in range(20):
        simulation.put(u=u)
        simulation.step(step)
        sent += 1
        if step < 10:  # one by one; then five in a row
            until_there()
        elif step % 5 == 4:
            simulation.wait()
            until_there()
"""

TRAIN = """
from pathlib import Path
from numpy_stream import stream
for sample in stream():
    Path("there", f"{int(sample['simulation'])}-{int(sample['step'])}").touch()
"""


@pytest.mark.parametrize("elements", [16, 2048])  # in one message with its header, and larger than that of a transport
def test_what_the_solver_waits_for_does_not_wait_for_more(folder: JobFolder, elements: int) -> None:
    folder.write(solve=SOLVE, train=TRAIN)
    (folder.path / "there").mkdir()
    folder.job(
        solvers={"program": ["python", "solve.py", str(elements)]},
        parameters={"count": 3, "space": {"alpha": [0, 1]}},
        fields={"u": {"dtype": "float32", "shape": [elements]}},
        buffer={"capacity": 8},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert sum(1 for _ in (folder.path / "there").iterdir()) == 60
