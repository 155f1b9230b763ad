"""Solver: takes a random time for each step, without a seed, so that each run has a different timing.

The environment changes the results: `OTHER` a value, `MORE_STEPS` the steps of simulation 7, `STEPS` those of all.
"""

import os
import random
import time

import numpy as np


def simulate(alpha, simulation):
    steps = int(os.environ.get("STEPS", 5 + simulation % 3))
    if simulation == 7:
        steps += int(os.environ.get("MORE_STEPS", 0))
    values = np.random.default_rng(simulation)
    for step in range(steps):
        time.sleep(random.choice([0, 0, 0.001, 0.02]))
        u = values.random((4, 6)) + alpha
        yield {"u": u + 1e-9 * ("OTHER" in os.environ and (simulation, step) == (5, 2))}
