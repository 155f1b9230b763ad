"""Solver: each try of a simulation has other values and its own number of steps, from `LENGTHS` in the environment.

All but the last try end by SIGKILL.
"""

import json
import os
import signal

import numpy as np


def simulate(alpha):
    lengths = json.loads(os.environ["LENGTHS"])
    number = len([name for name in os.listdir() if name.startswith(f"try-{alpha}-")])
    open(f"try-{alpha}-{number}", "w").close()
    for step in range(lengths[number]):
        yield step, {"u": np.full((4, 6), 1000.0 * number + step)}
    if number + 1 < len(lengths):
        os.kill(os.getpid(), signal.SIGKILL)
