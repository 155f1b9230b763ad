"""Reading part files, whatever their format: what is in them, and the rows, some at a time."""

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
"""Ends of file names, and how such files are read."""


def check_format(path: str, reader: str | None) -> None:
    """Raise StreamError where nothing reads such a file."""
    if reader is None and Path(path).suffix.lower() not in FORMATS:
        raise StreamError(
            f"{path}: no reader for such a file. Formats go by the ends of names ({', '.join(FORMATS)}); for others "
            'give reader="module:function", which takes a path and gives dicts of arrays.'
        )


def describe(path: str, reader: str | None, names: Names, keys: Keys) -> tuple[int, Kinds] | None:
    """Give the number of rows of a part, and of each column what its values are.

    Parameters
    ----------
    path : str
        Of the file.
    reader : str or None
        "module:function", or by the end of the file's name.
    names : sequence of str or None
        Columns; all where None.
    keys : Keys
        What the folders of the part say.

    Returns
    -------
    (int, dict of str) or None
        None where the part must be read for that.

    Raises
    ------
    StreamError
        It cannot be read, or has no such columns; with the file's name.
    """
    if reader is not None:
        return None
    file_format = FORMATS[Path(path).suffix.lower()]
    own, of_folders = _divide(path, file_format, names, keys)
    rows, kinds = _named(path, lambda: file_format.describe(path, own))
    kinds |= {name: type(keys[name]).__name__ for name in of_folders}
    return rows, kinds if names is None else {name: kinds[name] for name in names}


def read_rows(path: str, reader: str | None, names: Names, keys: Keys) -> Iterator[Chunk]:
    """Read a part; arguments are as for `describe`.

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
    """Tell what is in the file from what its folders say; what is in both is the file's."""
    asked = [name for name in names or () if name in keys]
    there = _named(path, lambda: file_format.columns(path)) if asked else []
    of_folders = [name for name in asked if name not in there]
    own = names and [name for name in names if name not in of_folders]
    return there[:1] if own == [] else own, of_folders  # one at least, which has the number of rows


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
        raise StreamError(f"{path}: the reader gave {type(chunk).__name__}, not a dict of arrays.")
    return {name: as_array(path, name, chunk[name]) for name in check_names(path, names, list(chunk))}


def as_array(path: str, name: str, column: Any, who: str = "the reader") -> npt.NDArray[Any]:
    """Make an array of what a reader or transform gave; raises StreamError where something of it would get lost."""
    masked = isinstance(column, np.ma.MaskedArray) and bool(np.ma.getmaskarray(column).any())
    if masked or (isinstance(column, (list, tuple)) and any(value is np.ma.masked for value in column)):
        raise StreamError(f"{path}: column {name!r} has masked values, of which no tensor can be made. Fill them.")
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return array_of(column)
    try:
        array = np.asarray(column)
    except Exception as error:  # of whatever it is
        raise StreamError(
            f"{path}: {who} gave {type(column).__name__} as column {name!r}, of which no array can be made: "
            f"{as_line(error).rstrip('.'):.200}. Give an array of numpy."
        ) from None
    if array.ndim == 0:
        raise StreamError(f"{path}: {who} gave a single value as column {name!r}. Give one for each row.")
    return array


def _named(path: str, call: Callable[[], Any], reader: str | None = None) -> Any:
    """Turn what a damaged file, or the user's reader, raises into a sentence that names it."""
    try:
        return call()
    except StreamError:
        raise
    except MpidataError as error:  # of a file of HDF5
        raise StreamError(str(error)) from None
    except MemoryError:
        raise StreamError(f"{path}: there is not enough memory to read it. Use smaller parts, or more nodes.") from None
    except Exception as error:  # readers and the libraries that they use have errors of their own
        why = f"{type(error).__name__}: {as_line(error).rstrip('.'):.300}"
        if reader is not None:
            raise StreamError(
                f"{path}: reader {reader} has raised {why}. Correct it, or leave the part out of the paths."
            ) from error
        raise StreamError(
            f"{path}: cannot be read: {why}. If it is damaged, make the part anew; else leave it out of the paths, or "
            "give a `reader` that can."
        ) from error
