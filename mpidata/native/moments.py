"""Moments of values, as in libmpidata: arrays [n, 6], `mpidata_moments` of c_api/src/wire/moments.h."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpidata.native.structures import structure

__all__ = ["Moments", "column", "merge", "numbers"]

Moments = NDArray[np.float64]
_MERGED = ("count", "mean", "m2", "least", "greatest", "not_finite")


def numbers() -> tuple[str, ...]:
    """Return the names of the numbers of moments, in order."""
    return tuple(name for name, *_ in structure("mpidata_moments")._fields_)


def column(moments: Moments, name: str) -> Moments:
    """Return a view of one number of all moments, shape [...]."""
    view: Moments = moments[..., numbers().index(name)]
    return view


def merge(parts: Sequence[Moments]) -> Moments:
    """Merge moments of disjoint sets of values, [n, 6] each, in this order; mpidata_moments_merge has the source."""
    into = np.array(parts[0], np.float64)
    count, mean, m2, least, greatest, not_finite = (column(into, name) for name in _MERGED)
    for part in parts[1:]:
        more = {name: column(part, name) for name in _MERGED}
        both = count + more["count"]
        share = np.divide(more["count"], both, out=np.zeros_like(both), where=both > 0)
        apart = more["mean"] - mean
        m2 += more["m2"] + np.square(apart) * count * share
        mean[:] = np.where(count > 0, mean + apart * share, more["mean"])
        count[:] = both
        np.minimum(least, more["least"], out=least)
        np.maximum(greatest, more["greatest"], out=greatest)
        not_finite += more["not_finite"]
    return into
