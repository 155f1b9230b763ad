"""Output files that users name: any path to which the system can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mpidata.run.own_files import write_text

__all__ = ["is_stream", "write_output"]


def write_output(path: Path, text: str) -> None:
    """Write a file that a user has named; raises OSError.

    A regular file is replaced atomically, at the end of any links. Devices, FIFOs and this process's own output are
    written into: to rename over them would remove them for everyone else.
    """
    if not is_stream(path):
        write_text(Path(os.path.realpath(path)), text)
        return
    own = _own_output(os.stat(path))
    with open(os.dup(own) if own is not None else os.open(path, os.O_WRONLY | os.O_CLOEXEC), "wb") as stream:
        stream.write(text.encode())


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a FIFO or this process's own output; raises OSError if it cannot be examined."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    other = not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return other or _own_output(found) is not None


def _own_output(found: os.stat_result) -> int | None:
    """Return the descriptor of stdout or stderr if a shell has opened it as this file, for example `> page.html`."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
        except OSError:  # it is closed
            pass
    return None
