"""Solver: starts MPI, and ends after a while without having joined the job."""

import os
import time

from mpi4py import MPI  # noqa: F401  # which starts it

time.sleep(4)
print("no mesh")
os._exit(1)
