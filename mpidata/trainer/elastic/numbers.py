"""Which number each trainer has after others were lost, or have come."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["among", "without"]


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
