"""Files that no other user can have written: how they are created, and how they are checked before use.

The contents of a run folder decide which programs run, so no file in it may belong to another user, even if all users
can write its parent folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import stat
from pathlib import Path

from mpidata.errors import LaunchError

__all__ = [
    "FOLDER_MODE",
    "PRIVATE_MODE",
    "check_own",
    "check_own_folder",
    "new_file",
    "opener",
    "read_own",
    "sync_folder",
    "write_text",
]

FOLDER_MODE = 0o755  # restricted by the umask; never writable by others, whatever the umask
PRIVATE_MODE = 0o600
_FILE_MODE = 0o644
_OTHERS_WRITE = 0o022
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC


def opener(path: str, flags: int) -> int:
    """Open a file so that others cannot write it if this creates it; for `open`."""
    return os.open(path, flags, _FILE_MODE)


def new_file(path: Path) -> None:
    """Create an empty file that others cannot write; raises FileExistsError if it exists."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, _FILE_MODE))


def write_text(path: Path, text: str, mode: int = _FILE_MODE) -> None:
    """Write a file atomically, by renaming a new one.

    Parameters
    ----------
    path : Path
        Replaced if it exists.
    text : str
        Its contents.
    mode : int
        Permissions, restricted by the umask.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # else a power failure may leave the name without the text
        os.replace(new, path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk; raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_own(path: Path) -> str:
    """Read a file that only this user can have written.

    Raises
    ------
    LaunchError
        Another user can have written it.
    OSError, UnicodeDecodeError
        It cannot be read.
    """
    # A pipe in its place must not block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | _OPEN), "rb") as file:
        check_own(file.fileno(), path)
        return file.read().decode()


def check_own_folder(path: Path) -> None:
    """Check that no other user can have put files into a folder.

    Raises
    ------
    LaunchError
        It belongs to another user, or others can write it.
    OSError
        There is no such folder; a link to a folder does not count.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _OPEN)
    try:
        check_own(descriptor, path)
    finally:
        os.close(descriptor)


def check_own(descriptor: int, path: Path) -> None:
    """Check that an open file belongs to this user and cannot be written by others; raises LaunchError."""
    found, me = os.fstat(descriptor), os.geteuid()
    if found.st_uid != me:
        raise LaunchError(
            f"{path} belongs to {_name(found.st_uid)}, not to {_name(me)}, so mpidata does not read it. Remove it, or "
            "set 'output' to a folder that only you can write, on a file system that does not map owners."
        )
    if stat.S_IMODE(found.st_mode) & _OTHERS_WRITE:
        raise LaunchError(
            f"{path} can be written by others, so mpidata does not read it. If nobody has changed it, `chmod "
            f"go-w {path}`; on a file system without permissions, set 'output' to a folder on another one."
        )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
