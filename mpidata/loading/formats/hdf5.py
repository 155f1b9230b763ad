"""HDF5 files, including records."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.formats.chunk import Chunk, Format, Kinds, Names, check_names, kind_of, same_length, slices
from mpidata.record.layout import EMPTY, FORMAT, Header, open_file

__all__ = ["HDF5"]

_LINKS = (h5py.SoftLink, h5py.ExternalLink)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[h5py.File]:
    with contextlib.suppress(ImportError):  # registers filters
        importlib.import_module("hdf5plugin")
    with open_file(Path(path)) as file:
        yield file


def _all(path: str, file: h5py.File) -> dict[str, h5py.Dataset]:
    """Find all datasets with rows, each once: by its name in a group, or by a link if it has none."""
    found: dict[str, h5py.Dataset] = {}
    links: list[str] = []
    seen = {file["/"]}

    def visit(group: h5py.Group, within: str) -> None:
        for name in group:
            if isinstance(group.get(name, getlink=True), _LINKS):
                links.append(within + name)
            elif (thing := group[name]) not in seen:
                seen.add(thing)
                if isinstance(thing, h5py.Group):
                    visit(thing, f"{within}{name}/")
                elif isinstance(thing, h5py.Dataset) and thing.shape:
                    found[within + name] = thing

    visit(file, "")
    for name in links:
        thing = _at(path, file, name)
        if isinstance(thing, h5py.Dataset) and thing.shape and thing not in seen:
            seen.add(thing)
            found[name] = thing
    return found


def _at(path: str, file: h5py.File, name: str) -> Any:
    """Return the object at a name; raises StreamError if there is none."""
    try:
        return file[name]
    except Exception as error:  # HDF5 has many for broken and circular links
        raise StreamError(
            f"{path}: {name!r} is a broken link ({str(error).strip(chr(34)):.200}). Provide its target, or name other "
            "datasets in `columns`."
        ) from None


def _datasets(path: str, file: h5py.File, names: Names) -> dict[str, h5py.Dataset]:
    """Return the requested datasets, by the requested names."""
    if names is None:
        found = _all(path, file)
    else:
        if missing := [name for name in names if file.get(name, getlink=True) is None]:
            check_names(path, missing, list(_all(path, file)))
        found = {name: _at(path, file, name) for name in names}
    for name, dataset in found.items():
        if not isinstance(dataset, h5py.Dataset) or not dataset.shape:
            what = "a group" if isinstance(dataset, h5py.Group) else "a single value"
            raise StreamError(f"{path}: {name!r} is {what}, and has no rows. Omit it from `columns`.")
        _check_readable(path, name, dataset)
    _check_rows(path, file, found)
    return found


def _check_rows(path: str, file: h5py.File, found: dict[str, h5py.Dataset]) -> None:
    """Refuse datasets of a record whose rows are not samples."""
    if file.attrs.get("format") != FORMAT:
        return
    packed = {f"/fields/{field.name}": field for field in Header.read(file, Path(path)).fields if field.length}
    for name, dataset in found.items():
        if field := packed.get(dataset.name):
            raise StreamError(
                f"{path}: {name!r} has its own number of {field.length!r} in each sample. Read the record with "
                "mpidata.RecordedDataset, or name the other datasets in `columns`."
            )


def _check_readable(path: str, name: str, dataset: h5py.Dataset) -> None:
    """Refuse datasets that HDF5 cannot decompress, and virtual ones with missing sources, which it would fill up."""
    for code, flags, filter_name in _filters(dataset):
        if not flags & h5py.h5z.FLAG_OPTIONAL and not h5py.h5z.filter_avail(code):
            raise StreamError(f"{path}: {_lacks_filter(name, code, filter_name)}")
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        if source.file_name != "." and "%" not in source.file_name + source.dset_name:
            _check_source(path, name, dataset, source)


def _filters(dataset: h5py.Dataset) -> list[tuple[int, int, str]]:
    settings = dataset.id.get_create_plist()
    found = (settings.get_filter(number) for number in range(settings.get_nfilters()))
    return [(code, flags, text.decode(errors="replace")) for code, flags, _, text in found]


def _lacks_filter(name: str, code: int, filter_name: str) -> str:
    return (
        f"{name!r} is compressed with a filter that is not available: {code} ({filter_name}). Install it (pip "
        "install hdf5plugin), or name the folder of the plugin in HDF5_PLUGIN_PATH."
    )


def _check_source(path: str, name: str, dataset: h5py.Dataset, source: Any) -> None:
    """Check the paths that HDF5 uses: beside the file or the target of a link, and in the working directory."""
    own = dataset.file.filename
    folders = [os.path.dirname(os.path.abspath(own)), os.path.dirname(os.path.realpath(own)), os.getcwd()]
    where = [os.path.join(folder, source.file_name) for folder in folders]
    there = next((file for file in where if os.path.exists(file)), None)
    if there is None:
        raise StreamError(f"{path}: {name!r} has its rows in {where[0]}, which does not exist. Provide that file.")
    with open_file(Path(there)) as file:
        if not isinstance(file.get(source.dset_name), h5py.Dataset):
            raise StreamError(f"{path}: {name!r} has its rows in {source.dset_name!r}, which is missing in {there}.")
        _check_readable(there, source.dset_name, file[source.dset_name])


def _rows(path: str, name: str, dataset: h5py.Dataset, part: slice) -> npt.NDArray[Any]:
    try:
        return np.asarray(dataset[part])
    except Exception as error:  # many kinds, depending on type and storage
        lacks = [
            _lacks_filter(name, code, text) for code, _, text in _filters(dataset) if not h5py.h5z.filter_avail(code)
        ]
        raise StreamError(
            f"{path}: {lacks[0]}"
            if lacks
            else f"{path}: {name!r} cannot be read: {type(error).__name__}: {str(error):.200}. Name the other ones in "
            "`columns`. If the file is damaged, recreate the part."
        ) from None


def _filled(file: h5py.File) -> npt.NDArray[np.bool_] | None:
    """Return which rows of a record hold a sample; None if the file is not a record."""
    if file.attrs.get("format") != FORMAT:
        return None
    return np.asarray(file["simulation"][:] != EMPTY)


def _columns(path: str) -> list[str]:
    with _opened(path) as file:
        return list(_all(path, file))


def _describe(path: str, names: Names) -> tuple[int, Kinds]:
    with _opened(path) as file:
        columns = _datasets(path, file, names)
        filled = _filled(file)
        rows = same_length(path, {name: len(column) for name, column in columns.items()})
        kinds = {name: kind_of(column.dtype, column.shape) for name, column in columns.items()}
        return rows if filled is None else int(filled.sum()), kinds


def _read(path: str, names: Names) -> Iterator[Chunk]:
    with _opened(path) as file:
        filled = _filled(file)
        columns = _datasets(path, file, names)
        rows = same_length(path, {name: len(column) for name, column in columns.items()})
        row_bytes = sum(c.dtype.itemsize * int(np.prod(c.shape[1:])) for c in columns.values())
        for part in slices(rows, row_bytes):
            chunk = {name: _rows(path, name, column, part) for name, column in columns.items()}
            yield chunk if filled is None else {name: column[filled[part]] for name, column in chunk.items()}


HDF5 = Format(_columns, _describe, _read)
