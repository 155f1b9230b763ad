"""Where a dataset on loaders is: epoch and batch, and how it goes on from there."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from mpidata.errors import StreamError

__all__ = ["Position"]


class Position:
    """The place of the newest iteration.

    Attributes
    ----------
    epoch, batches : int
        What is to be given out next; at the end of an epoch the next one's first batch.
    ahead : set of int
        Batches of this epoch that were given out before their turn, where `in_order` is False.
    sampler : object
        State of the user's sampler at this place, where it has one.
    random : object
        States of the random generators before this epoch's indices are drawn, where the user's sampler draws them.
    resumed : (int, int)
        Epoch and batch of the state that was loaded; (0, 0) where none was.
    """

    def __init__(self) -> None:
        self.epoch, self.batches = 0, 0
        self.ahead: set[int] = set()
        self.sampler: Any = None
        self.random: Any = None
        self.resumed = (0, 0)
        self._pending = False
        self._next = 0
        self._pass = 0
        self._after: Callable[[], tuple[Any, Any]] = lambda: (None, None)
        self._states: dict[int, Any] = {}

    def load(self, state: dict[str, Any], what: str, length: int | None = None) -> None:
        """Go on from a state with the next iteration.

        Parameters
        ----------
        state : dict
            As of `state`.
        what : str
            The name of the class, for the sentence.
        length : int, optional
            Number of batches of an epoch: behind the last of them is the next epoch.

        Raises
        ------
        StreamError
            It is no such state.
        """
        epoch, batches, ahead = state.get("epoch"), state.get("batches"), state.get("ahead", [])
        numbers = [epoch, batches, *ahead] if isinstance(ahead, list) else [None]
        if not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise StreamError(f"load_state_dict: this is no state of {what}. Give what its state_dict() returned.")
        assert isinstance(epoch, int) and isinstance(batches, int) and isinstance(ahead, list)
        self.epoch, self.batches, self.ahead = epoch, batches, set(ahead)
        self.sampler, self.random = state.get("sampler"), state.get("random")
        if length is not None and batches >= length > 0:
            self._advance(None)
        self.resumed = (self.epoch, self.batches)
        self._next, self._pending = self.epoch, True

    def state(self) -> dict[str, Any]:
        """Give what `load` takes."""
        random = {"random": self.random} if self.random is not None else {}
        place = {"epoch": self.epoch, "batches": self.batches, "ahead": sorted(self.ahead), "sampler": self.sampler}
        return place | random

    @property
    def next_epoch(self) -> int:
        """Epoch of the next iteration."""
        return self._next

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration; a place within the same one that was restored is kept."""
        if not hasattr(epoch, "__index__") or operator.index(epoch) < 0:
            raise StreamError(f"set_epoch: the epoch is {epoch!r}. Give a whole number, at least 0.")
        epoch = operator.index(epoch)
        if not (self._pending and epoch == self.epoch):
            self._pending = False
        self._next = epoch

    def begin(self) -> Callable[[int | None], None]:
        """Begin an iteration; gives what is to be told of its batches and its end, while it is the newest one."""
        if not self._pending:
            self._be_at(self._next)
        self._pending = False
        self._next = self.epoch + 1
        self._states = {}
        self._pass += 1
        number = self._pass

        def given(batch: int | None) -> None:
            if number == self._pass:
                self._advance(batch)

        return given

    def draw_with(self, sampler: Any, random: Any, after: Callable[[], tuple[Any, Any]]) -> None:
        """Note the states with which the iteration that has begun is drawn, and what gives those after it."""
        self.sampler, self.random, self._after = sampler, random, after

    def numbered(self, indices: Iterator[Any], state: Callable[[], Any] | None) -> Iterator[tuple[int, Any]]:
        """Count the batches of an iteration that has begun, without those given out already.

        Parameters
        ----------
        indices : iterator
            What batches are made of, from `batches` on.
        state : callable or None
            State of the sampler, where it has one.
        """
        ahead, states = frozenset(self.ahead), self._states
        for number, chosen in zip(itertools.count(self.batches), indices):  # noqa: B905 the counter has no end
            if state is not None:
                states[number] = copy.deepcopy(state())
            if number not in ahead:
                yield number, chosen

    def _advance(self, batch: int | None) -> None:
        if batch is None:
            after = self._after()
            self._be_at(self.epoch + 1)
            self.sampler, self.random = after
            return
        self.ahead.add(batch)
        while self.batches in self.ahead:
            self.ahead.remove(self.batches)
            self.sampler = self._states.pop(self.batches, None)
            self.batches += 1

    def _be_at(self, epoch: int) -> None:
        self.epoch, self.batches, self.ahead, self.sampler, self.random = epoch, 0, set(), None, None
