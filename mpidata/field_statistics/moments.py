"""Moments of values as libmpidata counts them: arrays [n, 6], `mpidata_moments` of c_api/src/wire/moments.h."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUMBERS", "Moments", "merge"]

NUMBERS = 6
COUNT, MEAN, M2, LEAST, GREATEST, NOT_FINITE = range(NUMBERS)
Moments = NDArray[np.float64]


def merge(parts: Sequence[Moments]) -> Moments:
    """Merge moments of disjoint sets of values, [n, 6] each, in this order; mpidata_moments_merge has the source."""
    into = np.array(parts[0], np.float64)
    for part in parts[1:]:
        count = into[:, COUNT] + part[:, COUNT]
        share = np.divide(part[:, COUNT], count, out=np.zeros_like(count), where=count > 0)
        apart = part[:, MEAN] - into[:, MEAN]
        into[:, M2] += part[:, M2] + np.square(apart) * into[:, COUNT] * share
        into[:, MEAN] = np.where(into[:, COUNT] > 0, into[:, MEAN] + apart * share, part[:, MEAN])
        into[:, COUNT] = count
        into[:, LEAST] = np.minimum(into[:, LEAST], part[:, LEAST])
        into[:, GREATEST] = np.maximum(into[:, GREATEST], part[:, GREATEST])
        into[:, NOT_FINITE] += part[:, NOT_FINITE]
    return into
