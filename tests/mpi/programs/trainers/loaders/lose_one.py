"""Trainer: kills its loader, and continues for a minute."""

import os
import signal
import time

from watching import program, wait_for

wait_for("loader_joined", 0)
os.kill(program(0), signal.SIGKILL)
time.sleep(60)
