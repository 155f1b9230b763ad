"""What the trainers tell each other about their shares of the validation samples."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mpidata.native.waiting import wait

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["all_counts", "all_objects"]

_CHUNK_BYTES = 1 << 30  # MPI counts in int


def all_counts(communicator: MPI.Intracomm | None, own: int) -> list[int]:
    """Collect a number of each trainer; collective over them, sleeps until all have come."""
    if communicator is None:  # `mpidata try`
        return [own]
    from mpi4py import MPI

    counts = np.zeros(communicator.Get_size(), np.int64)
    counts[communicator.Get_rank()] = own
    wait(communicator.Iallreduce(MPI.IN_PLACE, counts, MPI.SUM), longest_s=0.02)
    return [int(count) for count in counts]


def all_objects(communicator: MPI.Intracomm | None, own: Any) -> Iterator[Any]:
    """Collect what torch.save can write without pickled classes, of each trainer; collective, to be gone through whole.

    Notes
    -----
    Takes memory for what one trainer sends, three times, while it is read.
    """
    if communicator is None:
        yield own
        return
    memory = io.BytesIO()
    torch.save(own, memory)
    rank = communicator.Get_rank()
    for root, size in enumerate(all_counts(communicator, memory.getbuffer().nbytes)):
        sent = np.frombuffer(memory.getbuffer(), np.uint8) if root == rank else np.empty(size, np.uint8)
        for begin in range(0, size, _CHUNK_BYTES):
            wait(communicator.Ibcast(sent[begin : begin + _CHUNK_BYTES], root=root), longest_s=0.02)
        yield torch.load(io.BytesIO(sent.data), weights_only=True)
