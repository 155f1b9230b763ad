"""Makes loaders exit with 3 or 0 on two signals. The job's sitecustomize.py imports this."""

import os
import signal
import sys

if "mpidata.loader" in sys.orig_argv:
    signal.signal(signal.SIGRTMIN + 1, lambda *_: os._exit(3))
    signal.signal(signal.SIGRTMIN + 2, lambda *_: sys.exit(0))
