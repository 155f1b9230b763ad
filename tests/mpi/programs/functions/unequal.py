"""Simulations of 3 and 2 steps in turn: one of two trainers receives 1.5 times as many samples as the other."""

import os
import time

SLEEP_S = float(os.environ.get("SLEEP_S", 0))


def simulate(alpha, simulation):
    for _ in range(3 if simulation % 2 == 0 else 2):
        time.sleep(SLEEP_S)
        yield {"u": [[float(simulation)] * 6] * 4}
