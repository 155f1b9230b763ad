"""Reading part files of any format: their columns, and their rows in chunks."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError, StreamError, as_line
from mpidata.loading.formats.arrays import NPY, NPZ
from mpidata.loading.formats.arrow import ARROW, PARQUET, array_of
from mpidata.loading.formats.chunk import Chunk, Format, Kinds, Names, check_names
from mpidata.loading.formats.hdf5 import HDF5
from mpidata.loading.formats.hive import Keys
from mpidata.loading.formats.text import CSV

__all__ = ["FORMATS", "as_array", "check_format", "describe", "read_rows"]

FORMATS: dict[str, Format] = {
    ".parquet": PARQUET,
    **dict.fromkeys((".feather", ".arrow"), ARROW),
    ".csv": CSV,
    **dict.fromkeys((".h5", ".hdf5"), HDF5),
    ".npy": NPY,
    ".npz": NPZ,
}
"""Format of each suffix."""


def check_format(path: str, reader: str | None) -> None:
    """Raise StreamError if there is no reader for such a file."""
    if reader is None and Path(path).suffix.lower() not in FORMATS:
        raise StreamError(
            f"{path}: no reader for such a file. The suffix determines the format ({', '.join(FORMATS)}); for others "
            'give reader="module:function", which takes a path and returns an iterator of dicts of arrays.'
        )


def describe(path: str, reader: str | None, names: Names, keys: Keys) -> tuple[int, Kinds] | None:
    """Return the number of rows of a part, and the kind of values of each column.

    Parameters
    ----------
    path : str
        Of the file.
    reader : str or None
        "module:function"; None: by the file's suffix.
    names : sequence of str or None
        Columns; None: all.
    keys : Keys
        Columns from the folders of the part.

    Returns
    -------
    (int, dict of str) or None
        None if the part must be read for that.

    Raises
    ------
    StreamError
        The file, which is named, cannot be read or has no such columns.
    """
    if reader is not None:
        return None
    file_format = FORMATS[Path(path).suffix.lower()]
    own, of_folders = _divide(path, file_format, names, keys)
    rows, kinds = _named(path, lambda: file_format.describe(path, own))
    kinds |= {name: type(keys[name]).__name__ for name in of_folders}
    return rows, kinds if names is None else {name: kinds[name] for name in names}


def read_rows(path: str, reader: str | None, names: Names, keys: Keys) -> Iterator[Chunk]:
    """Read a part; the arguments are those of `describe`.

    Yields
    ------
    dict of ndarray
        Columns of some rows, at least one, of any dtype.
    """
    own, of_folders = names, list[str]()
    if reader is not None:
        read = _function(reader)
        chunks = _named(path, lambda: iter(read(path)), reader)
    else:
        file_format = FORMATS[Path(path).suffix.lower()]
        own, of_folders = _divide(path, file_format, names, keys)
        chunks = file_format.read(path, own)
    while (raw := _named(path, lambda: next(chunks, None), reader)) is not None:
        chunk: Chunk = _named(path, functools.partial(_columns, path, own, raw), reader)
        rows = len(next(iter(chunk.values()), ()))
        chunk |= {name: np.full(rows, keys[name]) for name in of_folders}
        if rows:
            yield chunk if names is None else {name: chunk[name] for name in names}


def _divide(path: str, file_format: Format, names: Names, keys: Keys) -> tuple[Names, list[str]]:
    """Return the columns to read from the file and those of its folders; the file's have precedence."""
    asked = [name for name in names or () if name in keys]
    there = _named(path, lambda: file_format.columns(path)) if asked else []
    of_folders = [name for name in asked if name not in there]
    own = names and [name for name in names if name not in of_folders]
    return there[:1] if own == [] else own, of_folders  # at least one, for the number of rows


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


def _columns(path: str, names: Names, chunk: Any) -> Chunk:
    if not isinstance(chunk, dict):
        raise StreamError(f"{path}: the reader returned {type(chunk).__name__}, not a dict of arrays.")
    return {name: as_array(path, name, chunk[name]) for name in check_names(path, names, list(chunk))}


def as_array(path: str, name: str, column: Any, who: str = "the reader") -> npt.NDArray[Any]:
    """Return an array of a reader's or transform's result; raises StreamError if values would be lost."""
    masked = isinstance(column, np.ma.MaskedArray) and bool(np.ma.getmaskarray(column).any())
    if masked or (isinstance(column, (list, tuple)) and any(value is np.ma.masked for value in column)):
        raise StreamError(f"{path}: column {name!r} has masked values, which cannot become a tensor. Fill them.")
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return array_of(column)
    try:
        array = np.asarray(column)
    except Exception as error:  # any kind, depending on the object
        raise StreamError(
            f"{path}: {who} returned {type(column).__name__} as column {name!r}, which cannot become an array: "
            f"{as_line(error).rstrip('.'):.200}. Return a numpy array."
        ) from None
    if array.ndim == 0:
        raise StreamError(f"{path}: {who} returned a single value as column {name!r}. Return one for each row.")
    return array


def _named(path: str, call: Callable[[], Any], reader: str | None = None) -> Any:
    """Convert exceptions of a damaged file or of the user's reader to a StreamError that names the file."""
    try:
        return call()
    except StreamError:
        raise
    except MpidataError as error:  # about an HDF5 file
        raise StreamError(str(error)) from None
    except MemoryError:
        raise StreamError(f"{path}: there is not enough memory to read it. Use smaller parts, or more nodes.") from None
    except Exception as error:  # readers and their libraries have their own exceptions
        why = f"{type(error).__name__}: {as_line(error).rstrip('.'):.300}"
        if reader is not None:
            raise StreamError(
                f"{path}: reader {reader} has raised {why}. Correct the reader, or omit the part from the paths."
            ) from error
        raise StreamError(
            f"{path}: cannot be read: {why}. If it is damaged, recreate the part; otherwise omit it from the paths, or "
            "give a `reader` for it."
        ) from error
