"""Trainer: runs torch workers, a pool and a program beside the stream; children query the stream."""

import multiprocessing
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import mpidata


def squares(batch):
    return (batch["u"] ** 2).sum().item()


def asks_the_stream(_):
    try:
        next(iter(stream))
    except mpidata.errors.StreamError as error:
        return str(error)


held_out = TensorDataset(torch.arange(40.0))
stream = mpidata.MPIStreamDataset(batch_size=4)
drawn = 0
for batch in stream:
    drawn += 1
    if drawn % 5 == 1:
        workers = DataLoader(held_out, batch_size=10, num_workers=2)
        assert sum(values.sum().item() for (values,) in workers) == 780
        with multiprocessing.get_context("fork").Pool(2) as pool:
            expected = squares(batch)
            assert pool.map(squares, [batch] * 3) == [expected] * 3
            assert all("MPI survives no fork" in said for said in pool.map(asks_the_stream, range(2)))
        said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
        assert said.stdout == "42\n"
        if drawn == 1:
            joins = [sys.executable, "-c", "import mpidata; mpidata.MPIStreamDataset()"]
            said = subprocess.run(joins, capture_output=True, text=True, timeout=60)
            assert said.returncode == 1 and "was started by a trainer, process" in said.stderr, said.stderr
print("batches", drawn)
