"""Sums of losses by simulation: arrays of LOSSES, made by trainers of their batches, and added up by the scheduler."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpidata.native import structures

__all__ = ["Sums", "add", "blank", "by_simulation", "of_samples"]

Sums = NDArray[np.void]
_ADDED = ("count", "not_finite", "sum", "excess", "difficulty")
# Beyond this, squares could overflow: as good as infinite.
_MOST = 1e150
# So small a part of its batch's mean, or less, counts as this: there are losses of 0.
_LEAST = 1e-4


def blank(count: int) -> Sums:
    """Make `count` sums of nothing."""
    sums = np.zeros(count, structures.LOSSES)
    sums["max"] = -np.inf
    return sums


def add(to: Sums, index: NDArray[np.intp], sums: Sums) -> None:
    """Add `sums`, older ones first, to the elements of `to` that `index` names, shape (n,), which may repeat."""
    for name in _ADDED:
        np.add.at(to[name], index, sums[name])
    finite = sums["count"] > 0
    np.maximum.at(to["max"], index[finite], sums["max"][finite])
    to["last"][index[finite]] = sums["last"][finite]


def by_simulation(sums: Sums) -> Sums:
    """Add up, older ones first, what is of the same simulation: once each, all finite, in the order of their ids."""
    ids, index = np.unique(sums["simulation"], return_inverse=True)
    added = blank(len(ids))
    added["simulation"] = ids
    add(added, index.reshape(-1), sums)
    added["max"][added["count"] == 0] = 0.0
    return added


def of_samples(simulations: NDArray[np.int64], losses: NDArray[np.float64]) -> Sums:
    """Make the sums of each sample of a batch by itself.

    Parameters
    ----------
    simulations, losses : ndarray, shape (B,)
        Id and loss of each sample; a loss that is not finite, or beyond 1e150, is only counted. Of a batch
        with a loss below 0 no difficulty is known.
    """
    sums = np.zeros(len(losses), structures.LOSSES)
    finite = np.abs(losses) < _MOST
    values = losses[finite]
    sums["simulation"] = simulations
    sums["count"], sums["not_finite"] = finite, ~finite
    for name in ("sum", "max", "last"):
        sums[name][finite] = values
    above = values - values.sum() / max(1, len(values))
    deviation = np.sqrt(np.dot(above, above) / max(1, len(values)))
    if deviation > 0:
        sums["excess"][finite] = np.maximum(0.0, above / deviation)
    if values.min(initial=0.0) >= 0 and values.max(initial=0.0) > 0:
        logs = np.log(np.maximum(values, _LEAST * values.mean()))
        sums["difficulty"][finite] = logs - logs.mean()
    return sums
