"""numpy's own files: npy, with one column or with records, and npz."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.formats.chunk import Chunk, Format, Kinds, Names, check_names, kind_of, same_length, slices

__all__ = ["NPY", "NPZ"]

_NPY = "data"


def _open_npy(path: str) -> npt.NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "Python objects in dtype" not in str(error):
            raise
        raise StreamError(f"{path}: holds Python objects, which are not read. Write numbers.") from None
    if isinstance(array, np.memmap) and array.offset + array.nbytes < os.path.getsize(path):
        raise StreamError(f"{path}: has more data after its array. Write one array per file, or an npz.")
    if array.ndim == 0:
        raise StreamError(f"{path}: holds a single number instead of rows.")
    return array  # type: ignore[no-any-return]


def _npy_columns(path: str) -> list[str]:
    return list(_open_npy(path).dtype.names or (_NPY,))


def _of_npy(path: str, names: Names) -> Chunk:
    array = _open_npy(path)
    wanted = check_names(path, names, array.dtype.names or (_NPY,))
    return {name: array[name] if array.dtype.names else array for name in wanted}


def _describe_npy(path: str, names: Names) -> tuple[int, Kinds]:
    columns = _of_npy(path, names)
    return len(next(iter(columns.values()))), _kinds(columns)


def _read_npy(path: str, names: Names) -> Iterator[Chunk]:
    columns = _of_npy(path, names)
    rows = len(next(iter(columns.values())))
    for part in slices(rows, sum(column[:1].nbytes for column in columns.values())):
        yield {name: column[part] for name, column in columns.items()}


def _kinds(columns: Chunk) -> Kinds:
    return {name: kind_of(column.dtype, column.shape) for name, column in columns.items()}


def _npz_columns(path: str) -> list[str]:
    with np.load(path, allow_pickle=False) as file:
        return list(file.files)


def _of_npz(path: str, names: Names) -> Chunk:
    columns = {}
    with np.load(path, allow_pickle=False) as file:
        for name in check_names(path, names, file.files):
            try:
                columns[name] = file[name]
                if not isinstance(columns[name], np.ndarray):
                    raise StreamError(f"{path}: {name!r} is not an array. Name the other ones in `columns`.")
            except ValueError as error:
                if "Object arrays" not in str(error):
                    raise
                raise StreamError(
                    f"{path}: {name!r} holds Python objects, which are not read. Name the other columns in `columns`."
                ) from None
            if columns[name].ndim == 0:
                raise StreamError(f"{path}: {name!r} is a single value. Name the other columns in `columns`.")
    same_length(path, {name: len(column) for name, column in columns.items()})
    return columns


def _describe_npz(path: str, names: Names) -> tuple[int, Kinds]:
    columns = _of_npz(path, names)
    return len(next(iter(columns.values()))), _kinds(columns)


def _read_npz(path: str, names: Names) -> Iterator[Chunk]:
    yield _of_npz(path, names)


NPY = Format(_npy_columns, _describe_npy, _read_npy)
NPZ = Format(_npz_columns, _describe_npz, _read_npz)
