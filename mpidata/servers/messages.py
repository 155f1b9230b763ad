"""Messages between trainers and servers, in a communicator with the trainers first, then the servers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.run.plan import Plan

__all__ = ["MOST_BYTES", "NOBODY", "Ask", "AllRanks", "Tag", "join_everyone", "pieces", "read_pieces"]

MOST_BYTES = (1 << 31) - 1
"""Largest size of a message."""

NOBODY = -1
"""In place of a trainer."""

_PIECE = 64 << 20


class Tag(IntEnum):
    """Kinds of messages."""

    MAKE = 1  # trainer 0 to each server: the part to store
    ASK = 2  # trainer to server 0: an `Ask`, a number, that of a checkpoint or 0
    PUSH = 3  # trainer to each server: the gradients of its part
    HAS = 4  # server to server 0: the number of a trainer from which it has one more push
    DEED = 5  # server 0 to each other server: what to do, by trainers
    GO = 6  # server 0 to a trainer: the version, the pushes that it is ahead, and the trainer that gets the states
    PART = 7  # server to a trainer: its part of the weights
    STATE = 8  # server to the first trainer that saves: its state
    WANT = 9  # trainer to server: the number of a table, and rows of it
    ROWS = 10  # server to a trainer: their values
    PLACE = 11  # server 0 to a trainer: the position of another one at its last push that counts
    TRAINED = 12  # server 0 to a trainer: the samples of pushes that count, without those that it got already


class Ask(IntEnum):
    """A trainer's message to server 0; the number is that of its pushes so far, except as noted."""

    JOIN = 1  # the number is a hash of its model
    PULL = 2
    REST = 3
    SAVE = 4  # with the number of the checkpoint
    LEAVE = 5
    LOST = 6  # the number is that of a trainer that has died
    SETTLE = 7  # like PAUSE; answered when its pushes count
    PAUSE = 8  # like REST, but a trainer that saves waits for it
    TRAINED = 10  # request the samples of others; the number counts the changes among those that train
    ABSENT = 11  # it has just joined, and takes part in no checkpoint up to this number
    WITHDRAW = 9  # it saves later, because a trainer has died; answered unless all have saved


class AllRanks(NamedTuple):
    """All trainers and servers.

    Attributes
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of the trainers, then the servers.
    trainers, spares : int
        Numbers of trainers and of spares, which are the last trainers and wait for a place.
    """

    communicator: MPI.Intracomm
    trainers: int
    spares: int = 0

    @property
    def servers(self) -> range:
        """Ranks of the servers."""
        return range(self.trainers, self.communicator.Get_size())


def join_everyone(plan: Plan) -> AllRanks:
    """Create the communicator. Collective over trainers and servers, after they have joined the job."""
    from mpi4py import MPI

    group = MPI.COMM_WORLD.Get_group()
    own = group.Incl([*range(1, 1 + plan.trainers), *plan.server_ranks])
    communicator = MPI.COMM_WORLD.Create_group(own)
    communicator.Set_errhandler(MPI.ERRORS_RETURN)
    own.Free()
    group.Free()
    return AllRanks(communicator, plan.trainers, plan.trainer_spares)


def pieces(thing: Any) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Pickle an object for messages: yields its size, then pieces."""
    data = np.frombuffer(pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), np.uint8)
    yield np.frombuffer(np.int64(len(data)).tobytes(), np.uint8)
    for at in range(0, len(data), _PIECE):
        yield data[at : at + _PIECE]


def read_pieces(receive: Callable[[np.ndarray[Any, np.dtype[np.uint8]]], object]) -> Any:
    """Return the object that `pieces` has written; `receive` fills an array with the next message."""
    size = np.zeros(1, np.int64)
    receive(size.view(np.uint8))
    data = np.empty(size[0], np.uint8)
    for at in range(0, len(data), _PIECE):
        receive(data[at : at + _PIECE])
    return pickle.loads(data.data)
