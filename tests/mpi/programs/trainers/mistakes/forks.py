"""Trainer: forks a child that draws from the stream, and one that only exits."""

import os
import sys

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=1)
children = []
for end in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        if end == 0:
            next(iter(stream))
        sys.exit()  # mpi4py then calls MPI_Finalize
count = sum(1 for _ in stream)
print("children", [os.waitpid(child, 0)[1] >> 8 for child in children])
