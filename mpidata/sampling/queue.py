"""The order in which simulations are taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["NONE", "Queue"]

NONE = -1
"""Returned instead of a simulation if there is none."""


class Queue:
    """Simulations by id, but `first` before all others, and retries before simulations that were never tried.

    Parameters
    ----------
    count : int
        Number of simulations; their ids are 0 to `count` - 1.
    first : range
        Ids of the validation simulations.

    Attributes
    ----------
    drawn : int
        Other simulations from this id on have no parameters yet, and cannot be taken.
    starved : bool
        Whether one without parameters was needed. Only `draw` resets this.

    Notes
    -----
    Not thread-safe. Takes no memory for simulations that were never taken.
    """

    def __init__(self, count: int, first: range) -> None:
        self.drawn = count
        self.starved = False
        self._count = count
        self._first = first
        self._taken = 0
        self._again: deque[int] = deque()

    def is_first(self, simulation: int) -> bool:
        """Whether a simulation is one of `first`."""
        return simulation in self._first

    @property
    def first_waits(self) -> bool:
        """Whether one of `first` is to be retried."""
        return bool(self._again) and self.is_first(self._again[0])

    @property
    def undrawn(self) -> int:
        """Number of simulations that have no parameters yet."""
        return max(0, self._count - len(self._first) - self.drawn)

    def draw(self, drawn: int) -> None:
        """Note that the simulations before `drawn` now have parameters."""
        self.drawn, self.starved = drawn, False

    def again(self, simulation: int) -> None:
        """Put back a simulation that was taken."""
        if self.is_first(simulation):
            self._again.appendleft(simulation)
        else:
            self._again.append(simulation)

    def take(self, is_pending: Callable[[int], bool]) -> int:
        """Take the next simulation that is pending and has parameters; NONE if there is none."""
        while self._again:
            if is_pending(simulation := self._again.popleft()):
                return simulation
        while self._taken < self._count:
            simulation = self._at(self._taken)
            if simulation >= self.drawn and not self.is_first(simulation):
                self.starved = True
                return NONE
            self._taken += 1
            if is_pending(simulation):
                return simulation
        return NONE

    def _at(self, position: int) -> int:
        """Return the id of the simulation at this position of the order: `first`, then the rest by id."""
        first = self._first
        ahead = len(first)
        if position < ahead:
            return first[position]
        position -= ahead
        return position if not ahead or position < first.start else position + ahead
