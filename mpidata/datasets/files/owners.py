"""Which loader holds which parts of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["balance", "deal", "hand_over"]

Owners = dict[int, int]


def deal(parts: Sequence[int], counts: Sequence[int], loaders: Sequence[int]) -> Owners:
    """Divide parts among loaders: consecutive parts with about the same number of rows.

    Parameters
    ----------
    parts : sequence of int
        In order.
    counts : sequence of int
        Rows of each part of the dataset.
    loaders : sequence of int
        At least one.

    Returns
    -------
    dict
        Loader of each part.
    """
    total, before, owners = max(1, sum(counts[part] for part in parts)), 0, {}
    for part in parts:
        owners[part] = loaders[(2 * before + counts[part]) * len(loaders) // (2 * total)]
        before += counts[part]
    return owners


def hand_over(owners: Owners, parts: Iterable[int], counts: Sequence[int], loaders: Sequence[int]) -> None:
    """Give parts, the largest first, to the loader with the fewest rows."""
    rows = _rows(owners, counts, loaders)
    for part in sorted(parts, key=lambda part: (-counts[part], part)):
        loader = min(loaders, key=lambda loader: (rows[loader], loader))
        owners[part] = loader
        rows[loader] += counts[part]


def balance(owners: Owners, counts: Sequence[int], loaders: Sequence[int]) -> Owners:
    """Reassign the parts of loaders that are gone, and give each empty loader half of the fullest one's parts."""
    owners = {part: loader for part, loader in owners.items() if loader in loaders} | {
        part: -1 for part, loader in owners.items() if loader not in loaders
    }
    hand_over(owners, [part for part, loader in owners.items() if loader == -1], counts, loaders)
    for loader in loaders:
        if loader not in owners.values():
            rows = _rows(owners, counts, loaders)
            fullest = max(loaders, key=lambda loader: (rows[loader], loader))
            theirs = [part for part, owner in owners.items() if owner == fullest]
            for part in theirs[len(theirs) // 2 :] if len(theirs) > 1 else []:
                owners[part] = loader
    return owners


def _rows(owners: Owners, counts: Sequence[int], loaders: Sequence[int]) -> dict[int, int]:
    rows = dict.fromkeys(loaders, 0)
    for part, loader in owners.items():
        if loader in rows:
            rows[loader] += counts[part]
    return rows
