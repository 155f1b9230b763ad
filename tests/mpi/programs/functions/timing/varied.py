"""Simulations of 1 to 200 steps, SLEEP_S (from the environment) seconds apart; u is alpha + step."""

import os
import time

LENGTHS = (1, 2, 3, 5, 50, 200)
SLEEP_S = float(os.environ.get("SLEEP_S", 0))


def simulate(alpha, simulation):
    for step in range(LENGTHS[simulation % len(LENGTHS)]):
        time.sleep(SLEEP_S)
        yield {"u": [[alpha + step] * 6] * 4}
