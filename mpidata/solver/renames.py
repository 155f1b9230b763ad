"""Which files were renamed to their names: Linux tells (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

__all__ = ["Renames"]

_MOVED_TO, _NONBLOCK, _CLOEXEC = 0x80, 0o4000, 0o2000000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name behind it


class Renames:
    """Sees files that are renamed into some folders, from when these are watched.

    Notes
    -----
    Not thread-safe, and for the life of the process. Where the system lets nobody watch, nothing is seen.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        self._folders: dict[int, Path] = {}
        self._seen: set[Path] = set()

    def watch(self, folder: Path) -> None:
        """Watch a folder that is there; no matter if it is watched already."""
        if self._file < 0 or folder in self._folders.values():
            return
        number = self._libc.inotify_add_watch(self._file, os.fsencode(folder), _MOVED_TO)
        if number >= 0:
            self._folders[number] = folder

    def take(self, path: Path) -> bool:
        """Whether a file was renamed to this name, since its folder is watched."""
        self._read()
        return path in self._seen

    def seen(self) -> set[Path]:
        """All files that were renamed to their names and are not forgotten, whether or not they are still there."""
        self._read()
        return set(self._seen)

    def _read(self) -> None:
        try:
            data = os.read(self._file, 65536) if self._folders else b""
        except OSError:  # nothing new
            return
        at = 0
        while at < len(data):
            number, _, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            name = data[at - length : at].rstrip(b"\0")
            if number in self._folders:
                self._seen.add(self._folders[number] / os.fsdecode(name))

    def forget(self, path: Path) -> None:
        """Forget a file that is done with: another one may get its name."""
        self._seen.discard(path)
