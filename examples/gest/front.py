"""A moving front with waves behind it; the job file names the function."""

import time

import numpy as np

STEPS = 8


def simulate(centre, width, waves, height):
    x = np.linspace(0.0, 1.0, 64)
    for step in range(STEPS):
        at = x - (centre + 0.02 * step)
        u = height * 0.5 * (1.0 + np.tanh(at / width)) * np.cos(np.pi * waves * at)
        time.sleep(0.02)  # a real solver takes longer
        yield {"u": u.astype(np.float32)}
