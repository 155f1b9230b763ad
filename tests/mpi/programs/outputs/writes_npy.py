"""Program unaware of mpidata: reads a number from input.txt, and writes an array in each of 12 steps.

Arguments: FOLDER, SIMULATION, then "cut" to truncate the file of step 2. The first try of simulation 1 fails
with a truncated file; a marker in FOLDER records that.
"""

import os
import sys
from pathlib import Path

import numpy as np

alpha = float(Path("input.txt").read_text())
marker = Path(sys.argv[1], "failed")
for step in range(12):
    np.save(f"u_{step}_t{step / 4}.npy", np.full((4, 6), alpha + step, np.float32))
    if step == 2 and "cut" in sys.argv:
        os.truncate("u_2_t0.5.npy", 150)
    if sys.argv[2] == "1" and step == 10 and not marker.exists():
        marker.touch()
        Path(f"u_{step + 1}_t2.75.npy").write_bytes(bytes(10))
        sys.exit(3)
