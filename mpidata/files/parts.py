"""The part files of a dataset: which there are, and whether they are still the same."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpidata.errors import StreamError

__all__ = ["Part", "digest_of", "find_parts"]


@dataclass(frozen=True)
class Part:
    """A part file.

    Attributes
    ----------
    path : str
        Absolute.
    size, time_ns : int
        Bytes, and when it was last written.
    """

    path: str
    size: int
    time_ns: int


def find_parts(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Part]:
    """Find part files.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Files, patterns as of a shell, or folders, of which all files are taken whose names do not begin
        with `.` or `_`.

    Returns
    -------
    list of Part
        In the order of their names, each once.

    Raises
    ------
    StreamError
        A path fits no file.
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = {os.path.abspath(name) for path in listed for name in _files_of(os.path.expanduser(os.fspath(path)))}
    if not found:
        raise StreamError("FileDataset: no part files are named. Give files, patterns or folders.")
    return [Part(name, (status := os.stat(name)).st_size, status.st_mtime_ns) for name in sorted(found)]


def digest_of(parts: Sequence[Part]) -> str:
    """Tell sets of part files apart, by their names without folders, sizes and times."""
    lines = "".join(f"{os.path.basename(part.path)}\0{part.size}\0{part.time_ns}\n" for part in parts)
    return hashlib.blake2b(lines.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _files_of(path: str) -> list[str]:
    if os.path.isdir(path):
        files = [str(p) for p in Path(path).iterdir() if p.is_file() and p.name[0] not in "._"]
    else:
        files = [path] if os.path.isfile(path) else [p for p in glob.glob(path, recursive=True) if os.path.isfile(p)]
    if not files:
        raise StreamError(f"FileDataset: {path} fits no file. Check its name; it must be there on all nodes.")
    return files
