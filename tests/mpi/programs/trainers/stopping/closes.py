"""Trainer: closes the stream after three batches, goes on until solvers were ended, and longer, and saves."""

import itertools
import os
import pathlib
import time

from mpi4py import MPI

import mpidata

run = pathlib.Path(os.environ["MPIDATA_RUN"])
stream = mpidata.MPIStreamDataset(batch_size=4)
for _ in itertools.islice(stream, 3):
    pass
stream.close()
print("over:", stream.over, flush=True)
deadline = time.monotonic() + 60
while not list((run / "exits").glob("*")) and time.monotonic() < deadline:
    time.sleep(0.1)
print("solvers have ended:", time.monotonic() < deadline, flush=True)
time.sleep(4)  # mpidata-rank looks every 2 s
mpidata.report(loss=0.5)
print("saved", flush=True)
if os.environ["RANK"] == "1":
    MPI.Finalize()  # as a script may that uses MPI itself
    print("finalized", flush=True)
