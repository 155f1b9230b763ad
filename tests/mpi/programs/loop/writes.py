"""Program that only writes files: 12 by 6 numbers per step. Arguments: ALPHA, SIMULATION, STEPS, STEP_S."""

import os
import sys
import time

import numpy as np

alpha, simulation, steps, step_s = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
for step in range(steps + simulation % 3):
    np.save(f"part_{step}.npy", np.full((12, 6), alpha + step, np.float32))
    os.rename(f"part_{step}.npy", f"u_{step}.npy")
    time.sleep(step_s)
