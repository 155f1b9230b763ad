"""Results of the readers of all formats: rows of a part as arrays, and the kinds of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError

__all__ = ["Chunk", "Format", "Kinds", "Names", "check_names", "kind_of", "objects", "same_length", "slices"]

Chunk: TypeAlias = dict[str, npt.NDArray[Any]]
"""Columns of some rows, of any dtype."""

Names: TypeAlias = "Sequence[str] | None"
"""Requested columns; None: all."""

Kinds: TypeAlias = dict[str, str]
"""Kind of values of each column, for messages and for comparison."""

_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class Format:
    """How files of a format are read.

    Attributes
    ----------
    columns : callable
        Returns the names of all columns of a file.
    describe : callable
        Returns the number of rows, and the kinds of the requested columns.
    read : callable
        Yields the rows in chunks.
    """

    columns: Callable[[str], list[str]]
    describe: Callable[[str, Names], tuple[int, Kinds]]
    read: Callable[[str, Names], Iterator[Chunk]]


def check_names(path: str, names: Names, there: Sequence[str]) -> list[str]:
    """Return the requested columns; raises StreamError if one does not exist, or exists twice."""
    wanted = list(there if names is None else names)
    for name in wanted:
        if name not in there:
            raise StreamError(f"{path}: there is no column {name!r}. It has {', '.join(map(repr, there))}.")
        if there.count(name) > 1:
            raise StreamError(
                f"{path}: {there.count(name)} columns have the name {name!r}. Give them different names, or name the "
                "other columns in `columns`."
            )
    return wanted


def kind_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Name the kind of a column, by dtype and shape of its array; byte order does not matter."""
    return f"{dtype.newbyteorder('=')}{list(shape[1:]) or ''}"


def same_length(path: str, lengths: dict[str, int]) -> int:
    """Return the number of rows; raises StreamError if columns differ in it."""
    if not lengths:
        raise StreamError(f"{path}: holds no columns.")
    (first, rows), *_ = lengths.items()
    for name, length in lengths.items():
        if length != rows:
            raise StreamError(
                f"{path}: {name!r} has {length} rows, but {first!r} has {rows}. Name columns of the same length in "
                "`columns`."
            )
    return rows


def slices(rows: int, row_bytes: int) -> Iterator[slice]:
    """Cut rows into pieces of some megabytes."""
    step = max(1, _CHUNK_BYTES // max(1, row_bytes))
    return (slice(first, first + step) for first in range(0, rows, step))


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an array with one object per row, whatever the objects are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
