"""Which number each trainer has after others were lost."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["without"]


def without(of: Sequence[int], lost: Sequence[int]) -> list[int]:
    """Fill the places of those that are lost, the first one first, each by the last one that is left."""
    left: list[int | None] = [None if number in lost else one for number, one in enumerate(of)]
    for number in lost:
        while left and left[-1] is None:
            left.pop()
        if number < len(left):
            left[number] = left.pop()
    return [one for one in left if one is not None]
