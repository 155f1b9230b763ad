"""The dtypes of fields in NumPy and HDF5. Neither has bfloat16: there its bits are uint16.

A solver puts arrays of `BITS_OF_BFLOAT16`, or of ml_dtypes' bfloat16, which is recognized by its name: that package is
not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import h5py

__all__ = [
    "BFLOAT16",
    "BITS_OF_BFLOAT16",
    "array_dtype",
    "dataset_dtype",
    "dtype_name",
    "mark_dataset",
    "numpy_dtype",
    "valid",
]

BFLOAT16 = "bfloat16"
BITS_OF_BFLOAT16 = np.dtype([(BFLOAT16, np.uint16)])
_MARK = "dtype"


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a field's elements in memory and files: uint16 for bfloat16."""
    return np.dtype(np.uint16 if name == BFLOAT16 else name)


def array_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of arrays that are put: like `numpy_dtype`, but `BITS_OF_BFLOAT16` for bfloat16."""
    return BITS_OF_BFLOAT16 if name == BFLOAT16 else np.dtype(name)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of the dtype of an array that is put; fields may not support it."""
    return BFLOAT16 if dtype == BITS_OF_BFLOAT16 else dtype.name


def mark_dataset(dataset: h5py.Dataset, name: str) -> None:
    """Write the field's dtype into an attribute of the dataset if HDF5 does not have it."""
    if name == BFLOAT16:
        dataset.attrs[_MARK] = name


def dataset_dtype(dataset: h5py.Dataset) -> str:
    """Return the name of a dataset's dtype, from the attribute if it has one; fields may not support it."""
    mark = dataset.attrs.get(_MARK)
    return BFLOAT16 if dataset.dtype == np.uint16 and isinstance(mark, str) and mark == BFLOAT16 else str(dataset.dtype)


def valid(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array; an array of bools, which may be any bytes in a file, is returned with 0 and 1."""
    return array.view(np.uint8) != 0 if array.dtype == np.bool_ else array
