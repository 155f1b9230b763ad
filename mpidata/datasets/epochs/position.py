"""Where a dataset on loaders is: epoch and batch, and how it goes on from there."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.callers import validates

__all__ = ["Pass", "Position"]


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
        self._of_job = ""
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
        self._of_job = ""
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

    def is_of_job(self, what: str) -> None:
        """Note, as the dataset of this class is made, that what was loaded so far is from the job's checkpoint."""
        self._of_job = what if self._pending else ""

    @property
    def next_epoch(self) -> int:
        """Epoch of the next iteration."""
        return self._next

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration; a place within the same one that was restored is kept.

        Raises StreamError where the job was resumed at a place in another epoch, of which no batch has come yet. A
        validation may begin anew.
        """
        if not hasattr(epoch, "__index__") or operator.index(epoch) < 0:
            raise StreamError(f"set_epoch: the epoch is {epoch!r}. Give a whole number, at least 0.")
        epoch = operator.index(epoch)
        if self._pending and self._of_job and epoch != self.epoch and not validates():
            raise StreamError(
                f"set_epoch({epoch}): the job was resumed at epoch {self.epoch}, batch {self.batches} of this "
                f"{self._of_job}. Begin the loop over epochs at its resumed[0], {self.epoch}; in a framework that "
                "calls set_epoch, also resume the framework's count of epochs. Or start the job without --resume."
            )
        if not (self._pending and epoch == self.epoch):
            self._pending = False
        self._next = epoch

    def set_whole_epoch(self) -> None:
        """Begin the next iteration at the first batch of its epoch, also where a place within it was restored."""
        self.batches, self.ahead, self.sampler = 0, set(), None

    def repeat(self) -> None:
        """Begin the next iteration where the first one has begun: at the place that was restored, or at epoch 0."""
        self._next = self.resumed[0]

    def begin(self) -> Pass:
        """Begin an iteration; gives what is to be told of its batches and its end."""
        if not self._pending:
            self._be_at(self._next)
            self._next = self.epoch + 1
        self._states = {}
        self._pass += 1
        return Pass(self, self._pass)

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
        return _Numbered(indices, state, self.batches, frozenset(self.ahead), self._states)

    def given(self, number: int, batch: int | None) -> None:
        """Take a batch of the number-th iteration, or with None its end, for given out, if it is the newest one."""
        if number != self._pass:
            return
        if self._pending:  # until now: who loads a state may begin a pass, and another one, as torchdata does
            self._pending, self._next = False, self.epoch + 1
        self._advance(batch)

    def drop(self, number: int) -> None:
        """Have the epoch of the number-th iteration begin with the next one, if it is the newest one."""
        if number == self._pass and self._next == self.epoch + 1:
            self._next = self.epoch

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


class _Numbered(Iterator[tuple[int, Any]]):
    """Batches with their numbers, but for those given out already; goes on where more come behind the last one."""

    def __init__(
        self,
        indices: Iterator[Any],
        state: Callable[[], Any] | None,
        first: int,
        ahead: frozenset[int],
        states: dict[int, Any],
    ) -> None:
        self._indices, self._state, self._ahead, self._states = indices, state, ahead, states
        self._next = first

    def __next__(self) -> tuple[int, Any]:
        while True:
            chosen, number = next(self._indices), self._next
            self._next += 1
            if self._state is not None:
                self._states[number] = copy.deepcopy(self._state())
            if number not in self._ahead:
                return number, chosen


class Pass:
    """One iteration, which tells the position of its batches while it is the newest one.

    Parameters
    ----------
    position : Position
        Of the dataset.
    number : int
        Of the iteration.
    """

    def __init__(self, position: Position, number: int) -> None:
        self._position, self._number = position, number
        self._used = False

    def given(self, batch: int | None) -> None:
        """Say that a batch is given out, by its number in the epoch, or with None that the epoch has ended."""
        self._used = True
        self._position.given(self._number, batch)

    def drop(self) -> None:
        """Say that nobody has the iteration any more; if nothing of it was used, it has not been one.

        Lightning, for example, calls `iter` to see whether it may.
        """
        if not self._used:
            self._position.drop(self._number)
