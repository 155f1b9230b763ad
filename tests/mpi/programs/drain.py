"""Trainer: takes everything and does nothing with it."""

import sys

import mpidata

count = sum(1 for _ in mpidata.MPIStreamDataset(batch_size=int(sys.argv[1]) if len(sys.argv) > 1 else 1))
print("batches", count)
