"""Exchange of numbers and objects between the trainers, for their shares of the validation samples."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpidata.native.waiting import wait
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.points import reached

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.trainer.elastic.members import Members

__all__ = ["all_counts", "all_objects", "objects_of_living"]

_CHUNK_BYTES = 1 << 30  # MPI counts in int


def all_counts(communicator: MPI.Intracomm | None, own: int) -> list[int]:
    """Collect a number from each trainer; collective over them, sleeps until all have called it."""
    if communicator is None:  # `mpidata try`
        return [own]
    from mpi4py import MPI

    counts = np.zeros(communicator.Get_size(), np.int64)
    counts[communicator.Get_rank()] = own
    wait(communicator.Iallreduce(MPI.IN_PLACE, counts, MPI.SUM), longest_s=0.02)
    return [int(count) for count in counts]


def all_objects(communicator: MPI.Intracomm | None, own: Any) -> Iterator[Any]:
    """Yield an object of each trainer, which torch.save can write without pickled classes; collective: exhaust it.

    Notes
    -----
    Needs three times the memory of one trainer's object while it is read.
    """
    if communicator is None:
        yield own
        return
    memory = _packed(own)
    rank = communicator.Get_rank()
    for root, size in enumerate(all_counts(communicator, memory.getbuffer().nbytes)):
        sent = np.frombuffer(memory.getbuffer(), np.uint8) if root == rank else np.empty(size, np.uint8)
        for begin in range(0, size, _CHUNK_BYTES):
            wait(communicator.Ibcast(sent[begin : begin + _CHUNK_BYTES], root=root), longest_s=0.02)
        yield torch.load(io.BytesIO(sent.data), weights_only=True)


def objects_of_living(members: Members, own: Any, generation: int) -> list[Any] | None:
    """Collect objects from the living trainers; None, on all, if one has died since this one's `generation`."""
    memory, found = _packed(own), list[Any]()
    sizes = np.zeros((members.count, 2), np.int64)
    size = np.array([memory.getbuffer().nbytes, generation], np.int64)
    if not members.once(lambda attempt: attempt.post(attempt.communicator.Iallgather, size, sizes)):
        return None
    for root, n in enumerate(sizes[:, 0].tolist()):
        if (sizes[:, 1] != members.generation).any():
            return None
        is_own = root == members.communicator.Get_rank()
        sent = np.frombuffer(memory.getbuffer(), np.uint8) if is_own else np.empty(n, np.uint8)
        if not members.once(functools.partial(_broadcast, sent, root)):
            return None
        found.append(torch.load(io.BytesIO(sent.data), weights_only=True))
    return found


def _broadcast(sent: NDArray[np.uint8], root: int, attempt: Attempt) -> None:
    reached("validation.send")
    for begin in range(0, len(sent), _CHUNK_BYTES):
        attempt.post(attempt.communicator.Ibcast, sent[begin : begin + _CHUNK_BYTES], root)


def _packed(own: Any) -> io.BytesIO:
    memory = io.BytesIO()
    torch.save(own, memory)
    return memory
