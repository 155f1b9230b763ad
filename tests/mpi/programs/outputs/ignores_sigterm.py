"""Program unaware of mpidata: writes files without end, and ignores SIGTERM, as does its child."""

import os
import signal
import time

import numpy as np

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    while True:
        time.sleep(1)
step = 0
while True:
    np.save(f"part_{step}.npy", np.full((4, 6), step, np.float32))
    os.rename(f"part_{step}.npy", f"u_{step}.npy")
    step += 1
    time.sleep(0.01)
