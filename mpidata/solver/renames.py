"""Detects files that were renamed to their names, by inotify of Linux."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

__all__ = ["Renames"]

_MOVED_TO, _NONBLOCK, _CLOEXEC = 0x80, 0o4000, 0o2000000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name behind it


class Renames:
    """Detects files that are renamed into some folders while these are watched.

    Notes
    -----
    Not thread-safe; lasts for the life of the process. If the system does not allow watching, nothing is detected.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        self._folders: dict[int, Path] = {}
        self._seen: set[Path] = set()

    def watch(self, folder: Path) -> None:
        """Watch an existing folder; no effect if it is already watched."""
        if self._file < 0 or folder in self._folders.values():
            return
        number = self._libc.inotify_add_watch(self._file, os.fsencode(folder), _MOVED_TO)
        if number >= 0:
            self._folders[number] = folder

    def take(self, path: Path) -> bool:
        """Return whether a file was renamed to this name since its folder is watched."""
        self._read()
        return path in self._seen

    def seen(self) -> set[Path]:
        """Return all files that were renamed and not forgotten, also those that no longer exist."""
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
        """Forget a file that was processed: another one may get its name."""
        self._seen.discard(path)
