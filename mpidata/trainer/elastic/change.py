"""What has changed among the trainers, and what a dataset of theirs is to do then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Change", "Place", "Shared"]

Place = tuple[int, int]
"""Epoch of a dataset, and how many of its batches were given out."""


@dataclass(frozen=True)
class Change:
    """What has changed among the trainers between two steps.

    Attributes
    ----------
    rank : int
        Number of this trainer from now on, from 0.
    trainers, before : int
        How many there are, and how many there were.
    lost : tuple of int
        Numbers, from before, of those that have died.
    generation : int
        Counts the changes, from 1.
    joined : tuple of int
        Numbers, from now on, of spares that have taken a place.
    retired : tuple of int
        Numbers, from before, of those that train no more.
    """

    rank: int
    trainers: int
    before: int
    lost: tuple[int, ...]
    generation: int
    joined: tuple[int, ...] = ()
    retired: tuple[int, ...] = ()


class Shared(Protocol):
    """A dataset whose rows the trainers share."""

    def place(self) -> Place:
        """Where this trainer is."""

    def lose(self, lost: dict[int, Place], change: Change) -> None:
        """Deal out anew what these trainers, by their numbers before, had not trained on at their places."""

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether `deal_anew` may be called now."""

    def deal_anew(self, number: int, trainers: int) -> None:
        """Deal out anew what nobody has had yet, to so many; all are at the same place."""
