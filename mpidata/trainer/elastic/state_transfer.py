"""The state for a trainer that takes a place: the living trainer with the lowest number sends it, in pieces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.points import reached

if TYPE_CHECKING:
    from mpidata.trainer.elastic.members import Members

__all__ = ["StateTransfer", "refuse_new"]

_TAG, _PIECE = 2, 64 << 20


class StateTransfer:
    """Sends and receives states.

    Attributes
    ----------
    pack : callable
        Returns the state of this trainer.
    begin : callable
        Called when this trainer is about to receive a state.
    model : callable or bytes or None
        Returns the concatenated values of the model; in a trainer that has just taken a place: these values.
    """

    def __init__(self) -> None:
        self.pack: Callable[[], bytes] = bytes
        self.begin: Callable[[], object] = lambda: None
        self.model: Callable[[], bytes] | bytes | None = None

    def give(self, members: Members, takers: Sequence[int]) -> bytes | None:
        """Send the state to trainers that have taken a place, by initial rank; return the state that this one received.

        Collective over the active trainers; sleeps. Raises StreamError if no trainer that has a state is left.
        """
        while True:
            generation = members.generation
            given, state = self._try(members, takers)
            if given and members.generation == generation:  # else a trainer has died, and the state does not reflect it
                return state

    def _try(self, members: Members, takers: Sequence[int]) -> tuple[bool, bytes | None]:
        givers = [one for one in members.numbers if one not in takers]
        if not givers:
            raise StreamError("All trainers died while a spare received their state: no rank has it any more.")
        gives, giver, generation = members.is_own(givers[0]), members.rank_of(givers[0]), members.generation
        own = np.frombuffer(self.pack() if gives else b"", np.uint8)
        size = np.array([len(own)], np.int64)
        sized = members.once(lambda attempt: attempt.post(attempt.communicator.Ibcast, size, giver))
        if not sized or members.generation != generation:
            return False, None
        left = [one for one in takers if one in members.numbers]
        taken = np.empty(size[0], np.uint8) if any(map(members.is_own, left)) else None
        ranks = list(map(members.rank_of, left)) if gives else []
        given = members.once(functools.partial(_pass_on, int(size[0]), taken, giver, own, ranks))
        return given, None if taken is None else taken.tobytes()


def _pass_on(
    size: int,
    taken: NDArray[np.uint8] | None,
    giver: int,
    own: NDArray[np.uint8],
    ranks: Sequence[int],
    attempt: Attempt,
) -> None:
    for first in range(0, size, _PIECE):
        if taken is not None:
            attempt.post(attempt.communicator.Irecv, taken[first : first + _PIECE], giver, _TAG)
            reached("join.receive")
        for rank in ranks:
            attempt.post(attempt.communicator.Isend, own[first : first + _PIECE], rank, _TAG)
            reached("join.send")


def refuse_new(members: Members, what: str) -> None:
    """Raise StreamError, starting with `what`, in a trainer that has just taken a place, as it is alone."""
    if members.is_new:
        raise StreamError(
            f"{what}: this trainer has just replaced another one, and the others are already in their loop. Before "
            "the first batch, skip the call if the dataset's `resumed` is neither 0 nor (0, 0)."
        )
