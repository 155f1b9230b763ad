"""Solver: killed in the first try of each simulation; one element of each step is not finite, or very large."""

import os
import signal

import numpy as np


def simulate(alpha):
    first = not os.path.exists(f"tried-{alpha}")
    open(f"tried-{alpha}", "w").close()
    for step in range(20):
        u = np.arange(24.0).reshape(4, 6) + step + 100 * alpha
        u[0, 0] = [np.nan, np.inf, -np.inf, 1e200, 5.0][step % 5]
        if first and step == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        yield step, {"u": u}
