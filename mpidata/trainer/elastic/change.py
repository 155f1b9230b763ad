"""Changes of the set of trainers, the new numbers, and the interface of a dataset that trainers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Change", "Place", "Shared", "among", "without"]

Place = tuple[int, int]
"""Epoch of a dataset, and the number of its batches that were returned."""


@dataclass(frozen=True)
class Change:
    """A change of the set of trainers between two steps.

    Attributes
    ----------
    rank : int
        New number of this trainer, from 0.
    trainers, before : int
        New and former number of trainers.
    lost : tuple of int
        Former numbers of trainers that have died.
    generation : int
        Counts the changes, from 1.
    joined : tuple of int
        New numbers of spares that have joined.
    retired : tuple of int
        Former numbers of trainers that no longer train.
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
        """Return the position of this trainer."""

    def lose(self, lost: dict[int, Place], change: Change) -> None:
        """Divide again the rows that these trainers, by former number, had not trained on at their positions."""

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether `deal_anew` may be called now."""

    def deal_anew(self, number: int, trainers: int) -> None:
        """Divide the remaining rows among this number of trainers, which are all at the same position."""


def without(of: Sequence[int], lost: Sequence[int]) -> list[int]:
    """Fill the places of lost trainers, the first one first, each with the last remaining trainer."""
    left: list[int | None] = [None if number in lost else one for number, one in enumerate(of)]
    for number in lost:
        while left and left[-1] is None:
            left.pop()
        if number < len(left):
            left[number] = left.pop()
    return [one for one in left if one is not None]


def among(of: Sequence[int], joined: Sequence[int], holes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Give joining trainers the places of lost ones, the last first; a trainer that filled such a place is renumbered.

    Returns the numbers, and the remaining holes.
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
