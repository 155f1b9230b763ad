"""A simulation of STEPS steps, SLEEP_S seconds apart, both from the environment; u is alpha + step."""

import os
import time

STEPS, SLEEP_S = int(os.environ.get("STEPS", 10)), float(os.environ.get("SLEEP_S", 0))


def simulate(alpha):
    for step in range(STEPS):
        if step:
            time.sleep(SLEEP_S)
        yield {"u": [[alpha + step] * 6] * 4}
