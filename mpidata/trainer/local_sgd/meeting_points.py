"""What the rest of a trainer tells trainers that run apart: where all have to be at the same point."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

__all__ = ["Apart", "How", "come"]


class How(IntEnum):
    """Why a trainer makes no steps of its own, but averages with the others."""

    HERE = 1  # it waits until all have come to the same point
    JOINING = 2  # the same, where spares may take a place
    LEAVING = 3  # its script has ended


class Apart(Protocol):
    """Trainers that run apart."""

    def hear(self) -> None:
        """Have all hear of an order of how many are to train, where their steps do not tell it."""

    def look(self) -> None:
        """Average where another trainer has asked for it. To be called while the script waits for a batch."""

    def average_now(self) -> None:
        """Ask the others for an average, and make it with them."""

    def rest(self) -> None:
        """Let nobody wait for this trainer's next step; it may wait for the others now."""

    def come(self, how: How) -> bool:
        """Average with the others until all have come; False where these have become others meanwhile."""


def come(apart: Apart | None) -> None:
    """Wait until all trainers have come to this point, where they run apart."""
    while apart is not None and not apart.come(How.HERE):
        pass
