"""Program unaware of mpidata: writes a mesh, then an array in each of 6 steps. Argument: simulation."""

import sys

import numpy as np

simulation = int(sys.argv[1])
np.save("mesh.npy", np.arange(16) + 1000.0 * simulation)
for step in range(6):
    np.save(f"u_{step}.npy", np.full(16, 10 * simulation + step, np.float32))
