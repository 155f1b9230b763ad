"""Maps: the row numbers of the rows of an array in the whole field."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpidata.native import constants
from mpidata.native.library import Library, check

if TYPE_CHECKING:
    from mpidata.solver.group_rank import GroupRank

__all__ = ["as_indices", "known_map"]


def as_indices(rank: GroupRank, field: str, indices: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return indices as an array of int64, shape (rows,); refuses other values, as `misuse` does."""
    try:
        array: npt.NDArray[Any] = np.asarray(indices)
        what = f"an array of {array.dtype} with {array.ndim} dimensions"
    except Exception:  # any object may be passed
        array, what = np.empty((), object), f"{indices!r:.100}"
    if array.ndim == 1 and (not array.size or (array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64))):
        return np.ascontiguousarray(array, np.int64)
    rank.misuse(
        constants.ERR_ARGUMENT, f"Field {field!r}: the indices are {what}", "Give an array of int64, shape (rows,)."
    )


def known_map(library: Library, indices: npt.NDArray[np.int64]) -> ctypes.c_void_p:
    """Return the library's map of these indices: an existing one, if the library knows the indices."""
    known = ctypes.c_void_p()
    check(library, library.mpidata_map_known(indices.size, indices.ctypes.data, 0, ctypes.byref(known)))
    return known
