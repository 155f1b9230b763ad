"""A rod between two ends at fixed temperatures; the job file names the function."""

import time

import numpy as np

STEPS = 300


def simulate(alpha, left):
    u = np.zeros(32)
    u[0] = left
    for _ in range(STEPS):
        u[1:-1] += alpha * (u[:-2] - 2 * u[1:-1] + u[2:])
        time.sleep(0.002)  # a real solver takes longer
        yield {"u": u.astype(np.float32)}
