"""Like steps.py, but the first simulation to reach its fifth step kills its rank a second later."""

import os
import signal
import time

from functions.steps import simulate as simulate_steps


def simulate(alpha):
    for step, fields in enumerate(simulate_steps(alpha)):
        try:
            if step == 4:
                os.close(os.open("died", os.O_CREAT | os.O_EXCL))
                time.sleep(1)
                os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
        yield fields
