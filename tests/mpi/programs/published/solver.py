"""Solver: makes steps until it reads version UNTIL, and checks all that it reads; u is the version of each step.

Arguments: UNTIL, elements, then "dies": rank 1 of group 0 kills itself once, after it first reads version 2; or
"stops": this rank is stopped while it waits for the values of a version.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from published.values import check

import mpidata
from mpidata.solver import published, refresh

until, elements, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
carried = bool(os.environ.get("MPIDATA_CARRIER"))
group = None if carried else mpidata.solver.group()
rank = 0 if group is None else group.Get_rank()
marker = Path("died")
print("=> first", refresh(), flush=True)  # also works outside a simulation
for simulation in mpidata.solver.simulations():
    version = step = 0
    while version < until or step < 3:
        if how == ["stops"] and rank == 1 and version and not marker.exists():
            marker.touch()
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        before, version = version, refresh()
        assert version >= before, (before, version)
        check(published(), version, elements)
        if how == ["dies"] and rank == 1 and version > 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if group is not None:
            assert len(set(group.allgather(version))) == 1
        if rank == 0:
            simulation.put(u=np.full((4, 6), version, np.float32))
        simulation.step(float(step))
        step += 1
        time.sleep(0.005)
print("=> read", version, flush=True)
