"""Solver: pauses once, in its fifth step."""

import time

import numpy as np


def simulate(alpha):
    u = np.full((160, 160), alpha)
    for step in range(40):
        yield {"u": u}
        if step == 4:
            time.sleep(1.2)
