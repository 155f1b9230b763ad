"""Reading part files, whatever their format: how many rows there are, and the rows, some at a time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.lib.format
import numpy.typing as npt

from mpidata.errors import MpidataError, StreamError, as_line
from mpidata.files import arrow
from mpidata.files.arrow import Chunk, Names
from mpidata.record.layout import EMPTY, FORMAT, open_file

__all__ = ["FORMATS", "check_format", "count_rows", "read_rows"]

_CHUNK_BYTES = 8 << 20
_NPY = "data"


def check_format(path: str, reader: str | None) -> None:
    """Raise StreamError where nothing reads such a file."""
    if reader is None and Path(path).suffix.lower() not in FORMATS:
        raise StreamError(
            f"{path}: no reader for such a file. Formats go by the ends of names ({', '.join(FORMATS)}); for others "
            'give reader="module:function", which takes a path and gives dicts of arrays.'
        )


def count_rows(path: str, reader: str | None) -> int | None:
    """Count the rows of a part; None where it must be read for that. Raises StreamError, with the file's name."""
    if reader is not None:
        return None
    return int(_named(path, lambda: FORMATS[Path(path).suffix.lower()][0](path)))


def read_rows(path: str, reader: str | None, names: Names) -> Iterator[Chunk]:
    """Read a part.

    Parameters
    ----------
    path : str
        Of the file.
    reader : str or None
        "module:function", or by the end of the file's name.
    names : sequence of str or None
        Columns; all where None.

    Yields
    ------
    dict of ndarray
        Columns of some rows, of any dtype.
    """
    if reader is not None:
        read = _function(reader)
        chunks = _named(path, lambda: iter(read(path)), reader)
    else:
        chunks = FORMATS[Path(path).suffix.lower()][1](path, names)
    while (chunk := _named(path, lambda: next(chunks, None), reader)) is not None:
        yield {name: np.asarray(chunk[name]) for name in _wanted(path, names, chunk)}


def _function(reader: str) -> Callable[[str], Any]:
    module, _, function = reader.partition(":")
    try:
        found: Callable[[str], Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise StreamError(
            f'FileDataset: reader="{reader}" cannot be imported by a loader: {as_line(error).rstrip(".")}. Give '
            '"module:function", and add the module\'s folder to PYTHONPATH.'
        ) from error
    return found


def _wanted(path: str, names: Names, chunk: Any) -> Sequence[str]:
    if not isinstance(chunk, dict):
        raise StreamError(f"{path}: the reader gave {type(chunk).__name__}, not a dict of arrays.")
    for name in names or ():
        if name not in chunk:
            raise StreamError(f"{path}: there is no column {name!r}. It has {', '.join(map(repr, chunk))}.")
    return list(chunk) if names is None else names


def _named(path: str, call: Callable[[], Any], reader: str | None = None) -> Any:
    """Turn what a damaged file, or the user's reader, raises into a sentence that names it."""
    try:
        return call()
    except StreamError:
        raise
    except MpidataError as error:  # of a file of HDF5
        raise StreamError(str(error)) from None
    except Exception as error:  # readers and the libraries that they use have errors of their own
        why = f"{type(error).__name__}: {as_line(error).rstrip('.'):.300}"
        fix = "Make the part anew, or leave it out of the paths."
        if reader is not None:
            raise StreamError(f"{path}: reader {reader} has raised {why}. Correct it. {fix}") from error
        raise StreamError(f"{path}: cannot be read: {why}. {fix}") from error


def _slices(rows: int, row_bytes: int) -> Iterator[slice]:
    step = max(1, _CHUNK_BYTES // max(1, row_bytes))
    return (slice(first, first + step) for first in range(0, rows, step))


def _open_npy(path: str) -> npt.NDArray[Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 0:
        raise StreamError(f"{path}: holds a single number, no rows.")
    return array  # type: ignore[no-any-return]


def _read_npy(path: str, names: Names) -> Iterator[Chunk]:
    array = _open_npy(path)
    fields = array.dtype.names
    for part in _slices(len(array), array[:1].nbytes):
        rows = array[part]
        yield {name: rows[name] for name in fields} if fields else {_NPY: rows}


def _count_npz(path: str) -> int:
    with np.load(path, allow_pickle=False) as file:
        return _same_length(path, {name: len(file[name]) for name in file.files})


def _read_npz(path: str, names: Names) -> Iterator[Chunk]:
    with np.load(path, allow_pickle=False) as file:
        _wanted(path, names, dict.fromkeys(file.files))
        columns = {name: file[name] for name in (names or file.files)}
    _same_length(path, {name: len(column) for name, column in columns.items()})
    yield columns


def _same_length(path: str, lengths: dict[str, int]) -> int:
    if not lengths:
        raise StreamError(f"{path}: holds no columns.")
    (first, rows), *_ = lengths.items()
    for name, length in lengths.items():
        if length != rows:
            raise StreamError(
                f"{path}: {name!r} has {length} rows, but {first!r} has {rows}. Name the columns that belong together."
            )
    return rows


def _datasets(path: str, file: h5py.File, names: Names) -> dict[str, h5py.Dataset]:
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and thing.shape and (names is None or name in names):
            found[name] = thing

    file.visititems(visit)
    return {name: found[name] for name in _wanted(path, names, found)}


def _filled(file: h5py.File) -> npt.NDArray[np.bool_] | None:
    """Tell which rows of a file of the project's own records hold a sample; None: another file."""
    if file.attrs.get("format") != FORMAT:
        return None
    return np.asarray(file["simulation"][:] != EMPTY)


def _count_hdf5(path: str) -> int:
    with open_file(Path(path)) as file:
        filled = _filled(file)
        if filled is not None:
            return int(filled.sum())
        return _same_length(path, {name: len(column) for name, column in _datasets(path, file, None).items()})


def _read_hdf5(path: str, names: Names) -> Iterator[Chunk]:
    with open_file(Path(path)) as file:
        filled = _filled(file)
        columns = _datasets(path, file, names)
        lengths = {name: len(column) for name, column in columns.items()}
        rows = _same_length(path, lengths) if filled is None else len(filled)
        row_bytes = sum(c.dtype.itemsize * int(np.prod(c.shape[1:])) for c in columns.values())
        for part in _slices(rows, row_bytes):
            chunk = {name: column[part] for name, column in columns.items()}
            yield chunk if filled is None else {name: column[filled[part]] for name, column in chunk.items()}


_Format = tuple[Callable[[str], int], Callable[[str, Names], Iterator[Chunk]]]
FORMATS: dict[str, _Format] = {
    ".parquet": (arrow.count_parquet, arrow.read_parquet),
    **dict.fromkeys((".feather", ".arrow"), (arrow.count_feather, arrow.read_feather)),
    ".csv": (arrow.count_csv, arrow.read_csv),
    **dict.fromkeys((".h5", ".hdf5"), (_count_hdf5, _read_hdf5)),
    ".npy": (lambda path: len(_open_npy(path)), _read_npy),
    ".npz": (_count_npz, _read_npz),
}
"""Ends of file names, and how such files are counted and read."""
