"""A simulation of 1000 steps, the sixth of which lasts for minutes in simulation 1."""

import time


def simulate(alpha, simulation):
    for step in range(1000):
        yield {"u": [[alpha] * 6] * 4}
        time.sleep(600 if simulation == 1 and step == 5 else 0.01)
