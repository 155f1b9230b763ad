"""Solver of slow_jobs.py, which sets the solver's pauses in `slow.json`."""

import json
import os
import time
from pathlib import Path

import numpy as np


def simulate(alpha, simulation):
    slow = json.loads(Path("slow.json").read_text())
    seconds = slow["sleep"] * (slow["factor"] if os.environ["MPIDATA_GROUP"] == "5" else 1)
    time.sleep(slow["start"])
    u = np.zeros((slow["side"], slow["side"]), np.float32)
    for step in range(slow["steps"] * (slow["long"] if simulation == 3 else 1)):
        if step % slow["every"] == slow["every"] - 1:
            time.sleep(seconds)
        yield {"u": u}
