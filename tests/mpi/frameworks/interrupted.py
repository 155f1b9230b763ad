"""A job that is stopped in the middle of its training, then resumed."""

import signal
import time

from jobs import JobFolder, Result, python
from waiting import wait_until

STEPS, SIMULATIONS = 20, 12


def interrupt(folder: JobFolder, program: str, trainers: int, how: str, by: int = signal.SIGTERM) -> Result:
    """Run trainers/frameworks/<program>, which touches at-8 after 8 steps, stop it, and resume it to its end."""
    folder.variables = {"STEPS": str(STEPS)}
    folder.job(
        trainers={"ranks": trainers, "program": python(f"trainers/frameworks/{program}", how)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        checkpoint={"every_s": 1000},  # so that Ctrl-C also writes one
    )
    process, started = folder.start(), time.monotonic()
    wait_until((folder.path / "at-8").exists, timeout_s=100, alive=process)
    process.send_signal(by)
    first = folder.finish(process, timeout=60, started=started)
    assert first.status == (75 if by == signal.SIGTERM else 130) and first.run is not None, first.logs()
    return folder.resume(first.run, timeout=150)
