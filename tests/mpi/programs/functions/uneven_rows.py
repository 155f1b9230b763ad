"""A simulation whose samples have 1 to 6000 rows of 20 bytes."""

import os

import numpy as np

ROWS = np.ones((6000, 5), np.float32)


def simulate(alpha):
    for count in np.random.default_rng(int(alpha * 2**40)).integers(1, 6001, int(os.environ["STEPS"])):
        yield {"rows": ROWS[:count]}
