"""What the readers of all formats give: rows of a part as arrays, and what kinds of columns it has."""

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
"""Columns that are wanted; None: all."""

Kinds: TypeAlias = dict[str, str]
"""Of each column what its values are, for people, and to be compared."""

_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class Format:
    """How files of a format are read.

    Attributes
    ----------
    columns : callable
        Gives the names of all columns of a file.
    describe : callable
        Gives the number of rows, and the kinds of the columns that are wanted.
    read : callable
        Gives the rows, some at a time.
    """

    columns: Callable[[str], list[str]]
    describe: Callable[[str, Names], tuple[int, Kinds]]
    read: Callable[[str, Names], Iterator[Chunk]]


def check_names(path: str, names: Names, there: Sequence[str]) -> list[str]:
    """Give the columns that are wanted; raises StreamError where one is not there, or there twice."""
    wanted = list(there if names is None else names)
    for name in wanted:
        if name not in there:
            raise StreamError(f"{path}: there is no column {name!r}. It has {', '.join(map(repr, there))}.")
        if there.count(name) > 1:
            raise StreamError(
                f"{path}: {there.count(name)} columns have the name {name!r}. Give each a name of its own, or name the "
                "other ones in `columns`."
            )
    return wanted


def kind_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Name the kind of a column, by dtype and shape of its array; byte order is none."""
    return f"{dtype.newbyteorder('=')}{list(shape[1:]) or ''}"


def same_length(path: str, lengths: dict[str, int]) -> int:
    """Give the number of rows; raises StreamError where columns differ in it."""
    if not lengths:
        raise StreamError(f"{path}: holds no columns.")
    (first, rows), *_ = lengths.items()
    for name, length in lengths.items():
        if length != rows:
            raise StreamError(
                f"{path}: {name!r} has {length} rows, but {first!r} has {rows}. Name those that belong together: "
                "`columns`."
            )
    return rows


def slices(rows: int, row_bytes: int) -> Iterator[slice]:
    """Cut rows into pieces of some megabytes."""
    step = max(1, _CHUNK_BYTES // max(1, row_bytes))
    return (slice(first, first + step) for first in range(0, rows, step))


def objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Make an array of objects, one a row, whatever they are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
