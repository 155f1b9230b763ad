"""Trainer: kills its loader, stops the spare one, and waits for a new one."""

import os
import signal

from watching import program, wait_for

wait_for("loader_joined", 0)
os.kill(program(0), signal.SIGKILL)
wait_for("spare_takes_over", 1)
os.kill(program(1), signal.SIGSTOP)
wait_for("loader_joined", 2)
