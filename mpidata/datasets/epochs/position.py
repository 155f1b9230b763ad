"""The position of a dataset on loaders: epoch and batch, and the next iteration from there."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.callers import validates

__all__ = ["Pass", "Position"]

_made: Counter[str] = Counter()
"""Number of datasets of each class in this process."""


class Position:
    """The position of the newest iteration.

    Parameters
    ----------
    what : str, optional
        The name of the class of the dataset, for error messages.

    Attributes
    ----------
    epoch, batches : int
        The next batch; at the end of an epoch the first batch of the next one.
    ahead : set of int
        Batches of this epoch that were returned early, with `in_order=False`.
    sampler : object
        State of the user's sampler at this position, if it has one.
    random : object
        States of the random generators before this epoch's indices are drawn, if the user's sampler draws them.
    resumed : (int, int)
        Epoch and batch of the loaded state; (0, 0) if none was loaded.
    """

    def __init__(self, what: str = "dataset") -> None:
        self._name = f"{what} {_made[what]}"
        _made[what] += 1
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
        """Continue from a state with the next iteration.

        Parameters
        ----------
        state : dict
            From `state`.
        what : str
            The name of the class, for error messages.
        length : int, optional
            Number of batches of an epoch; after the last one the next epoch starts.

        Raises
        ------
        StreamError
            It is not such a state.
        """
        epoch, batches, ahead = state.get("epoch"), state.get("batches"), state.get("ahead", [])
        numbers = [epoch, batches, *ahead] if isinstance(ahead, list) else [None]
        if not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise StreamError(f"load_state_dict: this is not a state of {what}. Give what its state_dict() returned.")
        assert isinstance(epoch, int) and isinstance(batches, int) and isinstance(ahead, list)
        self._of_job = ""
        self.epoch, self.batches, self.ahead = epoch, batches, set(ahead)
        self.sampler, self.random = state.get("sampler"), state.get("random")
        if length is not None and batches >= length > 0:
            self._advance(None)
        self.resumed = (self.epoch, self.batches)
        self._next, self._pending = self.epoch, True

    def state(self) -> dict[str, Any]:
        """Return a state for `load`."""
        random = {"random": self.random} if self.random is not None else {}
        place = {"epoch": self.epoch, "batches": self.batches, "ahead": sorted(self.ahead), "sampler": self.sampler}
        return place | random

    def is_of_job(self, what: str) -> None:
        """Note that a state loaded so far comes from the job's checkpoint; `what` is the name of the class."""
        self._of_job = what if self._pending else ""

    def text(self) -> str:
        """Return the next batch, as text."""
        return f"batch {self.batches} of epoch {self.epoch} of {self._name}"

    @property
    def next_epoch(self) -> int:
        """Epoch of the next iteration."""
        return self._next

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration; a restored position within it is kept.

        Raises StreamError if the job was resumed within another epoch, of which no batch was returned yet, except for
        a validation.
        """
        if not hasattr(epoch, "__index__") or operator.index(epoch) < 0:
            raise StreamError(f"set_epoch: the epoch is {epoch!r}. Give a whole number, at least 0.")
        epoch = operator.index(epoch)
        if self._pending and self._of_job and epoch != self.epoch and not validates():
            raise StreamError(
                f"set_epoch({epoch}): the job was resumed at epoch {self.epoch}, batch {self.batches} of this "
                f"{self._of_job}. Start the loop over epochs at its resumed[0], {self.epoch}; in a framework that "
                "calls set_epoch, also resume the framework's count of epochs. Or start the job without --resume."
            )
        if not (self._pending and epoch == self.epoch):
            self._pending = False
        self._next = epoch

    def set_whole_epoch(self) -> None:
        """Start the next iteration at the first batch of its epoch, ignoring a restored position within it."""
        self.batches, self.ahead, self.sampler = 0, set(), None

    def repeat(self) -> None:
        """Start the next iteration where the first one started: at the restored position, or at epoch 0."""
        self._next = self.resumed[0]

    def begin(self) -> Pass:
        """Start an iteration; returns the object to report its batches and its end to."""
        if not self._pending:
            self._be_at(self._next)
            self._next = self.epoch + 1
        self._states = {}
        self._pass += 1
        return Pass(self, self._pass)

    def draw_with(self, sampler: Any, random: Any, after: Callable[[], tuple[Any, Any]]) -> None:
        """Note the states before the current iteration's indices are drawn, and a function that returns those after."""
        self.sampler, self.random, self._after = sampler, random, after

    def numbered(self, indices: Iterator[Any], state: Callable[[], Any] | None) -> Iterator[tuple[int, Any]]:
        """Enumerate the batches of the current iteration, without those that were returned already.

        Parameters
        ----------
        indices : iterator
            Of the batches from `batches` on.
        state : callable or None
            Returns the state of the sampler, if it has one.
        """
        return _Numbered(indices, state, self.batches, frozenset(self.ahead), self._states)

    def given(self, number: int, batch: int | None) -> None:
        """Note that a batch of the number-th iteration was returned, or with None its end, if it is the newest one."""
        if number != self._pass:
            return
        if self._pending:  # until now a caller may start several passes after loading a state, as torchdata does
            self._pending, self._next = False, self.epoch + 1
        self._advance(batch)

    def drop(self, number: int) -> None:
        """Let the next iteration start the epoch of the number-th one again, if that is the newest one."""
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
    """Batches with their numbers, without those returned already; includes batches that are appended later."""

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
    """One iteration, which reports its batches to the position while it is the newest one.

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
        """Report that a batch is returned, by its number in the epoch, or with None that the epoch has ended."""
        self._used = True
        self._position.given(self._number, batch)

    def drop(self) -> None:
        """Report that the iteration no longer exists; without a returned batch it does not count.

        Lightning, for example, calls `iter` only to check that it works.
        """
        if not self._used:
            self._position.drop(self._number)
