"""One of several trainers: the first one kills the second loader, and waits for the next loader."""

import os
import signal

from watching import program, trainer, wait_for

if trainer.communicator.rank == 0:
    wait_for("loader_joined", 0)
    wait_for("loader_joined", 1)
    os.kill(program(1), signal.SIGKILL)
    wait_for("loader_joined", 2)
