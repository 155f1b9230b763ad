"""The arrays that a trainer has published, for solvers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.dtypes import array_dtype
from mpidata.native import constants
from mpidata.native.library import Library, check

__all__ = ["published_arrays"]


def published_arrays(library: Library) -> dict[str, npt.NDArray[Any]]:
    """Return all arrays of this rank's version, as views of the library's memory; empty before the first version."""
    names = {dtype.number: name for name, dtype in constants.DTYPES.items()}
    name, values, shape = ctypes.c_char_p(), ctypes.c_void_p(), (ctypes.c_int64 * constants.MAX_NDIM)()
    dtype, ndim = ctypes.c_int(), ctypes.c_int()
    found = *(ctypes.byref(what) for what in (name, dtype, ndim)), shape, ctypes.byref(values)
    arrays: dict[str, npt.NDArray[Any]] = {}
    while (status := library.mpidata_published_at(len(arrays), *found)) == constants.SUCCESS:
        assert name.value is not None
        extents = tuple(shape[: ndim.value])
        arrays[name.value.decode()] = _view(values.value, extents, array_dtype(names[dtype.value]))
    if status not in (constants.END, constants.ERR_AGAIN):
        check(library, status)
    return arrays


def _view(address: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size or address is None:
        return np.empty(shape, dtype)
    array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)).view(dtype).reshape(shape)
    array.flags.writeable = False
    return array
