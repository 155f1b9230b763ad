"""Trainer: publishes [1, 2, 3] times the version, before the first batch and after each batch.

Argument: DIES, the batch in which trainer 0 dies; 0 for none.
"""

import os
import signal
import sys

import torch
from numpy_stream import stream

import mpidata
from mpidata.trainer.join import join

dies = int(sys.argv[1])
batches, version = stream(1), 0
first = join().communicator.Get_rank() == 0


def publish(version: int) -> int:
    version += 1
    assert mpidata.publish({"factor": torch.tensor([1.0, 2.0, 3.0]) * version}) == version
    return version


version = publish(version)
for number, _ in enumerate(batches, 1):
    if first and number == dies:
        os.kill(os.getpid(), signal.SIGKILL)
    version = publish(version)
