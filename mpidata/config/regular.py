"""Files that a user names are read only where they are regular: a pipe would be waited for, a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["open_regular"]


def open_regular(path: Path, most: int | None = None) -> BinaryIO:
    """Open a file for reading, without waiting for anything.

    Parameters
    ----------
    path : Path
        Links are followed.
    most : int, optional
        Bytes that it may have.

    Raises
    ------
    OSError
        It cannot be opened, is no regular file, or is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if most is not None and found.st_size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
