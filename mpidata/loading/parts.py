"""The part files of a dataset, and hashes to find out whether they have changed."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpidata.errors import StreamError
from mpidata.loading.formats.hive import is_key

__all__ = ["Part", "contents_of", "digest_of", "find_parts"]

# Hashed of a file's contents: pieces at its ends, and pieces between.
_PIECE_BYTES, _PIECES = 64 << 10, 16


@dataclass(frozen=True)
class Part:
    """A part file.

    Attributes
    ----------
    path : str
        Absolute.
    size, time_ns : int
        Bytes, and time of the last change.
    """

    path: str
    size: int
    time_ns: int


def find_parts(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Part]:
    """Find part files.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Files, shell patterns, or folders. Of a folder, all files are used whose names do not begin with `.` or
        `_`, including those in folders like `year=2019`.

    Returns
    -------
    list of Part
        In the order of their names, each once.

    Raises
    ------
    StreamError
        A path matches no file.
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = {os.path.abspath(name) for path in listed for name in _files_of(os.path.expanduser(os.fspath(path)))}
    if not found:
        raise StreamError("FileDataset: no part files are named. Give files, patterns or folders.")
    return [Part(name, (status := os.stat(name)).st_size, status.st_mtime_ns) for name in sorted(found)]


def digest_of(parts: Sequence[Part], times: bool = True) -> str:
    """Return a hash of the files' base names, sizes and, with `times`, mtimes."""
    of = ((os.path.basename(part.path), part.size, *([part.time_ns] if times else [])) for part in parts)
    lines = "".join("\0".join(map(str, values)) + "\n" for values in of)
    return hashlib.blake2b(lines.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def contents_of(part: Part) -> bytes:
    """Return a hash, 16 bytes, of the first and last 64 KiB of a part and 16 such pieces between."""
    digest = hashlib.blake2b(digest_size=16)
    last = max(0, part.size - _PIECE_BYTES)
    with open(part.path, "rb") as file:
        for place in sorted({last * i // (_PIECES + 1) for i in range(_PIECES + 2)}):
            file.seek(place)
            digest.update(file.read(_PIECE_BYTES))
    return digest.digest()


def _files_of(path: str) -> list[str]:
    if os.path.isdir(path):
        return _files_in(Path(path))
    files = [path] if os.path.isfile(path) else [p for p in glob.glob(path, recursive=True) if os.path.isfile(p)]
    if not files:
        raise StreamError(f"FileDataset: {path} matches no file. Check the path; the file must exist on all nodes.")
    return files


def _files_in(folder: Path) -> list[str]:
    entries = [entry for entry in folder.iterdir() if entry.name[0] not in "._"]
    files = [str(entry) for entry in entries if entry.is_file()]
    files += [file for entry in entries if entry.is_dir() and is_key(entry.name) for file in _files_in(entry)]
    if not files:
        folders = sorted(entry.name for entry in entries if entry.is_dir())
        holds = f"holds folders ({', '.join(folders[:3])}) but no files" if folders else "holds no files"
        fix = f"Name the files in them, for example {folder}/**/*.parquet." if folders else "Check the path."
        raise StreamError(f"FileDataset: {folder} {holds}. {fix}")
    return files
