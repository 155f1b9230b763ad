"""Trainer: closes the stream after three batches, once a solver is in a long step; saves after the solvers end."""

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
deadline = time.monotonic() + 60
while not (run / "in_long_step").exists() and time.monotonic() < deadline:
    time.sleep(0.01)
stream.close()
print("over:", stream.over, flush=True)
while not list((run / "exits").glob("*")) and time.monotonic() < deadline:
    time.sleep(0.1)
print("solvers have ended:", time.monotonic() < deadline, flush=True)
time.sleep(4)  # mpidata-rank looks every 2 s
mpidata.report(loss=0.5)
print("saved", flush=True)
if os.environ["RANK"] == "1":
    MPI.Finalize()  # as in a script that uses MPI itself
    print("finalized", flush=True)
