"""Solver: random_timing.py, killed once at each [simulation, step] in the environment variable `DEATHS`."""

import json
import os
import signal
from pathlib import Path

from functions.timing import random_timing


def simulate(alpha, simulation):
    deaths = json.loads(os.environ["DEATHS"])
    for step, fields in enumerate(random_timing.simulate(alpha, simulation)):
        mark = Path(f"died_{simulation}_{step}")
        if [simulation, step] in deaths and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield fields
