"""Solver: pauses for long before its first step, and in simulation 1 also later."""

import time


def simulate(alpha, simulation):
    time.sleep(3)
    for step in range(4):
        yield {"u": [[alpha] * 6] * 4}
        if simulation == 1 and step == 2:
            time.sleep(60)
