"""Sums of losses by simulation: arrays of LOSSES, which trainers compute from batches, and the scheduler adds up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpidata.native import structures

__all__ = ["Sums", "add", "blank", "by_simulation", "of_samples"]

Sums = NDArray[np.void]
_ADDED = ("count", "not_finite", "sum", "excess", "difficulty")
# Beyond this, squares could overflow: treated as infinite.
_MOST = 1e150
# Smaller fractions of the batch's mean count as this, because losses may be 0.
_LEAST = 1e-4


def blank(count: int) -> Sums:
    """Return `count` empty sums."""
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
    """Add up the sums of each simulation, older ones first; returns one for each, all finite, in order of ids."""
    ids, index = np.unique(sums["simulation"], return_inverse=True)
    added = blank(len(ids))
    added["simulation"] = ids
    add(added, index.reshape(-1), sums)
    added["max"][added["count"] == 0] = 0.0
    return added


def of_samples(simulations: NDArray[np.int64], losses: NDArray[np.float64]) -> Sums:
    """Return the sums of each single sample of a batch.

    Parameters
    ----------
    simulations, losses : ndarray, shape (B,)
        Id and loss of each sample; a loss that is not finite, or beyond 1e150, is only counted. A batch with a loss
        below 0 has no difficulty.
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
