"""How the rest of a trainer reaches trainers that run apart, when all must be at the same point."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

__all__ = ["IndependentTrainers", "How", "come"]


class How(IntEnum):
    """The reason why a trainer makes no steps, but averages with the others."""

    HERE = 1  # it waits until all have reached the same point
    JOINING = 2  # the same, and spares may take a place there
    LEAVING = 3  # its script has ended


class IndependentTrainers(Protocol):
    """Trainers that run apart."""

    def hear(self) -> None:
        """Inform all of an order to change the number of trainers, if their steps do not."""

    def look(self) -> None:
        """Average if another trainer has requested it. Call this while the script waits for a batch."""

    def average_now(self) -> None:
        """Request an average from the others, and join it."""

    def rest(self) -> None:
        """Let no trainer wait for this one's next step, because it may now wait for the others."""

    def come(self, how: How) -> bool:
        """Average with the others until all have arrived; False if the set of trainers changes meanwhile."""


def come(apart: IndependentTrainers | None) -> None:
    """Wait until all trainers have reached this point, if they run apart."""
    while apart is not None and not apart.come(How.HERE):
        pass
