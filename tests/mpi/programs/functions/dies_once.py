"""The first simulation to reach its fifth step kills its rank, whose exit must then be recorded."""

import os
import signal

import numpy as np


def simulate(alpha):
    for step in range(8):
        try:
            if step == 4:
                os.close(os.open("died", os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
        yield {"u": np.zeros((4, 6), np.float32)}
