"""Solver: starts MPI, and ends after a while without joining the job."""

import os
import time

from mpi4py import MPI  # noqa: F401  # this import starts MPI

time.sleep(4)
print("no mesh")
os._exit(1)
