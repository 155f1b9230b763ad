"""What has changed among the trainers, which number each has then, and what a dataset of theirs is to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Change", "Place", "Shared", "among", "without"]

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


def without(of: Sequence[int], lost: Sequence[int]) -> list[int]:
    """Fill the places of those that are lost, the first one first, each by the last one that is left."""
    left: list[int | None] = [None if number in lost else one for number, one in enumerate(of)]
    for number in lost:
        while left and left[-1] is None:
            left.pop()
        if number < len(left):
            left[number] = left.pop()
    return [one for one in left if one is not None]


def among(of: Sequence[int], joined: Sequence[int], holes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Give those that come the places of those that were lost, the last one first; who had filled it gets a new one.

    Returns the numbers, and the holes that are left.
    """
    numbers, left = list(of), list(holes)
    for one in joined:
        hole = left.pop() if left else len(numbers)
        if hole < len(numbers):
            numbers.append(numbers[hole])
            numbers[hole] = one
        else:
            numbers.append(one)
    return numbers, left
