"""A function with a mesh for each simulation and try: xy is put once, u in each step.

Sizes and the number of steps come from the environment. If TRIED names a file, the first try of simulation 0 fails
halfway; its mesh values are higher by 100, and its u by 0.5. MOVED is added to all meshes.
"""

import os
import time
from pathlib import Path

import numpy as np

import mpidata

NODES, WIDE, STEPS = (int(os.environ.get(*of)) for of in (("NODES", "16"), ("WIDE", "16"), ("STEPS", "6")))


def mesh(simulation, tried=0):
    return np.arange(NODES, dtype=np.float64) + 1000 * simulation + 100 * tried


def simulate(alpha, simulation):
    marker = Path(os.environ["TRIED"]) if "TRIED" in os.environ and simulation == 0 else None
    first_try = marker is not None and not marker.exists()
    yield mpidata.Constants(xy=mesh(simulation, int(first_try)) + float(os.environ.get("MOVED", "0")))
    for step in range(STEPS):
        if first_try and step == STEPS // 2:
            marker.touch()
            raise ValueError("as asked")
        time.sleep(float(os.environ.get("SLEEP_S", "0")))
        yield float(step), {"u": np.full(WIDE, 10 * simulation + step + 0.5 * first_try, np.float32)}
