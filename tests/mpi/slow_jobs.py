"""Jobs that are slow on purpose, each in one way. All of them sleep, because they have more ranks than cores."""

import json
from typing import Any

from jobs import JobFolder, python


def write_slow_job(
    folder: JobFolder,
    *,
    groups: int,
    sleep: float,
    train: tuple[float, ...],
    count: int,
    steps: int = 40,
    every: int = 1,
    factor: float = 1.0,
    start: float = 0.0,
    side: int = 128,
    long: int = 1,
    **keys: Any,
) -> None:
    """Write a job: sleeps every `every` steps, `factor` times as long on group 5; `train` seconds for a batch of 4.

    Simulation 3 has `long` times as many steps.
    """
    slow = {
        "steps": steps, "every": every, "sleep": sleep, "factor": factor, "start": start, "side": side, "long": long,
    }  # fmt: skip
    (folder.path / "slow.json").write_text(json.dumps(slow))
    sleeps = python("trainers/timing/sleeps.py", *train)
    job = {
        "trainers": {"ranks": len(train), "program": sleeps},
        "solvers": {"groups": groups, "function": "functions.timing.sleeps:simulate", "in_flight": 1},
        "parameters": {"count": count, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [side, side]}},
        "buffer": {"policy": "fifo", "capacity": 200},
    }
    folder.job(**{key: {**value, **keys.pop(key, {})} for key, value in job.items()}, **keys)
