"""Columns of a part as the training loop gets them: selected, stacked, transformed and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.formats.chunk import Chunk, Kinds
from mpidata.loading.formats.readers import as_array

__all__ = ["Choice", "Spec", "check_choice", "compare_kinds", "conform", "names_of", "prepare", "refuse_others"]

Choice: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]] | None"
"""Name of a column, names of several, or a mapping from new names to a column or to several to be stacked."""

Spec: TypeAlias = "tuple[tuple[str, str, tuple[int, ...]], ...]"
"""Name, dtype and shape of a row of each column."""

# The dtypes that torch also has; longdouble, for example, is missing.
_TENSORS = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
}


def check_choice(choice: Any) -> None:
    """Raise StreamError if it is not a `Choice`."""
    chosen = choice.values() if isinstance(choice, Mapping) else [choice] if isinstance(choice, str) else choice
    chosen = list(chosen) if isinstance(chosen, Iterable) else []
    lists = [[given] if isinstance(given, str) else given for given in chosen]
    named = all(isinstance(given, Sequence) and given and all(isinstance(n, str) for n in given) for given in lists)
    flat = not isinstance(choice, Mapping) and any(not isinstance(given, str) for given in chosen or ())
    if choice is not None and (flat or not lists or not named):
        raise StreamError(
            f"FileDataset: columns is {choice!r:.200}. Give names of columns, or a mapping from new names to a column "
            "or to several."
        )


def names_of(choice: Choice) -> list[str] | None:
    """List the columns of the file that are needed, each once; None: all."""
    if choice is None:
        return None
    if isinstance(choice, str):
        return [choice]
    chosen = choice.values() if isinstance(choice, Mapping) else choice
    names = [name for given in chosen for name in ([given] if isinstance(given, str) else given)]
    return list(dict.fromkeys(names))


def prepare(path: str, choice: Choice, transform: Callable[[Chunk], Any] | None, chunk: Chunk, first: int = 0) -> Chunk:
    """Return the columns for batches, made from a chunk of a file that starts at row `first`.

    Raises
    ------
    StreamError
        With the names of file and column, and the row if a single one is invalid.
    """
    lengths = {len(column) for column in chunk.values()}
    if len(lengths) != 1:
        raise StreamError(f"{path}: the reader returned columns of different lengths, {sorted(lengths)} rows.")
    (rows,) = lengths
    if isinstance(choice, Mapping):
        chunk = {name: _stacked(path, name, given, chunk) for name, given in choice.items()}
    if transform is not None:
        given = transform({n: c if c.flags.writeable else c.copy() for n, c in chunk.items()})
        if not isinstance(given, Mapping) or not given:
            raise StreamError(f"{path}: transform returned {type(given).__name__}, not a dict of arrays.")
        chunk = {str(name): as_array(path, str(name), column, "transform") for name, column in given.items()}
    for name, column in chunk.items():
        if len(column) != rows:
            raise StreamError(
                f"{path}: transform returned {len(column)} rows of {name!r} for {rows} rows. Return as many as it got."
            )
    return {name: _number(path, name, column, first) for name, column in chunk.items()}


def conform(path: str, chunk: Chunk, spec: Spec | None, of: str) -> tuple[Chunk, Spec]:
    """Return the columns of a chunk in the order of `spec`; raises StreamError if they differ from those of file `of`.

    Returns
    -------
    (dict of ndarray, Spec)
        The columns; and the spec, which is the chunk's own if there is none yet.
    """
    own = tuple((name, column.dtype.str, column.shape[1:]) for name, column in chunk.items())
    if spec is None:
        return chunk, own
    refuse_others(path, own, spec, of)
    return {name: chunk[name] for name, _, _ in spec}, spec


def refuse_others(path: str, own: Spec, spec: Spec, of: str) -> None:
    """Raise StreamError if the columns of a file are not those of another; their order does not matter."""
    if set(own) == set(spec):
        return
    here, there = (
        ", ".join(f"{name} {np.dtype(dtype)}{list(shape)}" for name, dtype, shape in sorted(set(a) - set(b)))
        for a, b in ((own, spec), (spec, own))
    )
    raise StreamError(different(path, of, here, there))


def compare_kinds(kinds: Mapping[str, Kinds]) -> None:
    """Raise StreamError if the columns of parts, by path, are not of the same kinds."""
    (first, expected), *others = kinds.items()
    for path, own in others:
        if own != expected:
            here, there = (
                ", ".join(f"{name} {a[name]}" for name in sorted(a) if b.get(name) != a[name])
                for a, b in ((own, expected), (expected, own))
            )
            raise StreamError(different(path, first, here, there))


def different(path: str, of: str, here: str, there: str) -> str:
    """Return the message that the columns of two files, or of two pieces of one file, differ."""
    if path == of:
        return (
            f"{path}: its columns change within the file: {here or 'fewer'}, and {there or 'fewer'} before. Let "
            "`transform` make them the same, or omit them from `columns`."
        )
    return (
        f"{path}: its columns are not those of {of}: {here or 'fewer'} here, {there or 'fewer'} there. Give parts with "
        "the same columns, name `columns` that all have, or let `transform` make them the same."
    )


def _stacked(path: str, name: str, given: str | Sequence[str], chunk: Chunk) -> npt.NDArray[Any]:
    if isinstance(given, str):
        return chunk[given]
    for part in given:
        if chunk[part].dtype.name not in _TENSORS or chunk[part].ndim != 1:
            raise StreamError(
                f"{path}: column {part!r} cannot be stacked into {name!r}: it does not have one number per row."
            )
        if chunk[part].dtype != chunk[given[0]].dtype:
            raise StreamError(
                f"{path}: columns {given[0]!r} ({chunk[given[0]].dtype}) and {part!r} ({chunk[part].dtype}) cannot be "
                f"stacked into {name!r}: their dtypes differ. Let `transform` make them the same."
            )
    return np.stack([chunk[part] for part in given], axis=1)


def _number(path: str, name: str, column: npt.NDArray[Any], first: int) -> npt.NDArray[Any]:
    if column.dtype.name not in _TENSORS:
        raise StreamError(
            f"{path}: column {name!r} has {_what(column, first)}, which cannot become a tensor. Omit it from "
            "`columns`, or let `transform` convert it to numbers."
        )
    return np.ascontiguousarray(column, column.dtype.newbyteorder("="))


def _what(column: npt.NDArray[Any], first: int) -> str:
    """Describe the values of a column that are not numbers, with the row of a null."""
    if column.dtype.kind in "mM":
        what = "durations" if column.dtype.kind == "m" else "timestamps"
        empty = np.flatnonzero(np.isnat(column).reshape(len(column), -1).any(axis=1))
        return f"{what} with nulls (row {first + empty[0]})" if len(empty) else what
    if column.dtype.kind in "SU":
        return "texts"
    if column.dtype != object:
        return str(column.dtype)
    values = column.reshape(len(column), -1).tolist()
    for kind, is_it in (("nulls", _is_null), ("nulls in lists", _has_null)):
        row = next((row for row, cells in enumerate(values) if any(map(is_it, cells))), None)
        if row is not None:
            return f"{kind} (row {first + row})"
    cells = [cell for row in values for cell in row]
    if all(isinstance(cell, list) for cell in cells):
        if len({len(cell) for cell in cells}) > 1:
            return "lists of different lengths"
        return f"lists of {_named_kinds([inner for cell in cells for inner in cell])}"
    return _named_kinds(cells)


def _named_kinds(values: list[Any]) -> str:
    kinds = {type(value) for value in values}
    if kinds <= {str, bytes}:
        return "texts"
    return f"values of {', '.join(sorted(kind.__name__ for kind in kinds))}"


def _is_null(value: Any) -> bool:
    return value is None


def _has_null(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(_is_null(v) or _has_null(v) for v in value)
