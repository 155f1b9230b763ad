"""Columns of a part as the training loop gets them: chosen, stacked, transformed and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.files.arrow import Chunk

__all__ = ["Choice", "Spec", "compare", "names_of", "prepare"]

Choice: TypeAlias = "Sequence[str] | Mapping[str, str | Sequence[str]] | None"
"""Names of columns, or a mapping from new names to a column or several to be stacked."""

Spec: TypeAlias = "tuple[tuple[str, str, tuple[int, ...]], ...]"
"""Name, dtype and shape of a row of each column."""

_WIDER = {"uint16": np.int32, "uint32": np.int64, "uint64": np.int64}  # what torch does not have in full


def names_of(choice: Choice) -> list[str] | None:
    """List the columns of the file that are needed, each once; None: all."""
    if choice is None:
        return None
    chosen = choice.values() if isinstance(choice, Mapping) else choice
    names = [name for given in chosen for name in ([given] if isinstance(given, str) else given)]
    return list(dict.fromkeys(names))


def prepare(path: str, choice: Choice, transform: Callable[[Chunk], Any] | None, chunk: Chunk) -> Chunk:
    """Make of a chunk of a file what batches are made of; raises StreamError, with the file's and column's name."""
    lengths = {len(column) for column in chunk.values()}
    if len(lengths) != 1:
        raise StreamError(f"{path}: the reader gave columns of {sorted(lengths)} rows together.")
    (rows,) = lengths
    if isinstance(choice, Mapping):
        chunk = {name: _stacked(path, name, given, chunk) for name, given in choice.items()}
    if transform is not None:
        given = transform(chunk)
        if not isinstance(given, Mapping) or not given:
            raise StreamError(f"{path}: transform gave {type(given).__name__}, not a dict of arrays.")
        chunk = {str(name): np.asarray(column) for name, column in given.items()}
    for name, column in chunk.items():
        if column.ndim == 0 or len(column) != rows:
            raise StreamError(
                f"{path}: transform gave {column.shape[:1] or 'no'} rows of {name!r} for {rows}. It must give one "
                "for each."
            )
    return {name: _number(path, name, column) for name, column in chunk.items()}


def compare(path: str, chunk: Chunk, spec: Spec | None, of: str) -> Spec:
    """Give the spec of a chunk; raises StreamError where it is not `spec`, of the file `of`."""
    own = tuple((name, column.dtype.str, column.shape[1:]) for name, column in chunk.items())
    if spec is not None and own != spec:
        here, there = (
            ", ".join(f"{name} {np.dtype(dtype)}{list(shape)}" for name, dtype, shape in sorted(set(a) - set(b)))
            for a, b in ((own, spec), (spec, own))
        )
        raise StreamError(
            f"{path}: its columns are not those of {of}: {here or 'fewer'} here, {there or 'fewer'} there. Give parts "
            "of one kind, or name `columns` that all have."
        )
    return own


def _stacked(path: str, name: str, given: str | Sequence[str], chunk: Chunk) -> npt.NDArray[Any]:
    if isinstance(given, str):
        return chunk[given]
    for part in given:
        if chunk[part].dtype.kind not in "biuf" or chunk[part].ndim != 1:
            raise StreamError(
                f"{path}: column {part!r} cannot be stacked into {name!r}, as it is not one number a row."
            )
    return np.stack([chunk[part] for part in given], axis=1)


def _number(path: str, name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype.kind not in "biufc" or column.dtype.itemsize > 16:
        raise StreamError(
            f"{path}: column {name!r} has {_what(column)}, of which no tensor can be made. Leave it out of `columns`, "
            "or let `transform` make numbers of it."
        )
    native = column.dtype.newbyteorder("=")
    return np.ascontiguousarray(column, _WIDER.get(native.name, native))


def _what(column: npt.NDArray[Any]) -> str:
    if column.dtype != object:
        return str(column.dtype)
    kinds = {type(value) for value in column.ravel()[:1000].tolist()}
    if type(None) in kinds:
        return "nulls"
    return "lists of several lengths" if list in kinds else "texts" if str in kinds else "objects"
