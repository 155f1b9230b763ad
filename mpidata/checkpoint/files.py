"""The folders of checkpoints: names, checksums, and the newest one that can be used.

`checkpoints/000012` holds `trainer-0000.h5`, ..., `scheduler.json` and `checksums.json`. It was renamed from
`000012.new` when it was complete. A folder without `.new` is therefore complete, unless it was damaged later.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from mpidata.errors import MpidataError

__all__ = [
    "CHECKSUMS",
    "SCHEDULER",
    "Digest",
    "damage",
    "digest",
    "newest_valid",
    "numbers",
    "path_of",
    "read_scheduler",
    "remove_unfinished",
    "trainer_file",
    "trainer_of",
    "trainers_in",
    "unfinished",
]

CHECKSUMS = "checksums.json"
SCHEDULER = "scheduler.json"
_CHUNK = 4 << 20
_TRAINER_FILE = re.compile(r"trainer-(\d{4,})\.h5")


class Digest(NamedTuple):
    """Checksum and size of a file."""

    sha256: str
    bytes: int


def path_of(checkpoints: Path, number: int) -> Path:
    """Folder of a complete checkpoint."""
    return checkpoints / f"{number:06d}"


def unfinished(checkpoints: Path, number: int) -> Path:
    """Folder of a checkpoint that is being written."""
    return checkpoints / f"{number:06d}.new"


def trainer_file(trainer: int) -> str:
    """Name of a trainer's file."""
    return f"trainer-{trainer:04d}.h5"


def trainer_of(name: str) -> int | None:
    """Return the number of the trainer whose file has this name; None if it is not a trainer's file."""
    match = _TRAINER_FILE.fullmatch(name)
    return int(match[1]) if match else None


def trainers_in(checkpoint: Path) -> list[int]:
    """List the trainers that have a file in a checkpoint, ascending: those alive when it was taken."""
    found = (trainer_of(name) for name in os.listdir(checkpoint))
    return sorted(number for number in found if number is not None)


def numbers(checkpoints: Path) -> list[int]:
    """Return the numbers of the complete checkpoints in a folder, oldest first.

    Raises
    ------
    MpidataError
        The folder exists, but cannot be read.
    """
    try:
        names = [name for name in os.listdir(checkpoints) if name.isdecimal()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise MpidataError(
            f"Cannot read {checkpoints}: {error.strerror}. Make it a readable folder: it holds the checkpoints."
        ) from None
    return sorted(int(name) for name in names if name == f"{int(name):06d}")


def remove_unfinished(checkpoints: Path) -> None:
    """Remove the incomplete checkpoints of a job that died; does nothing if there are none."""
    for path in checkpoints.glob("*.new"):
        shutil.rmtree(path, ignore_errors=True)


def digest(path: Path) -> Digest:
    """Return the checksum and size of a file; raises OSError. Releases the GIL nearly all the time."""
    sha256 = hashlib.sha256()
    total = 0
    memory = memoryview(bytearray(_CHUNK))
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(memory):
            sha256.update(memory[:count])
            total += count
    return Digest(sha256.hexdigest(), total)


def damage(checkpoint: Path) -> str | None:
    """Compare a checkpoint with its checksums.

    Parameters
    ----------
    checkpoint : Path
        Its folder.

    Returns
    -------
    str or None
        The problem, without a full stop; None if there is none.
    """
    try:
        files = json.loads((checkpoint / CHECKSUMS).read_bytes())["files"]
        wanted = {str(name): Digest(str(entry["sha256"]), int(entry["bytes"])) for name, entry in files.items()}
    except OSError as error:
        return f"{CHECKSUMS} cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{CHECKSUMS} is damaged"
    if SCHEDULER not in wanted or all(trainer_of(name) is None for name in wanted):
        return f"{CHECKSUMS} does not list all files"
    for name, entry in sorted(wanted.items()):
        try:
            size = (checkpoint / name).stat().st_size
            if size != entry.bytes:
                return f"{name} has {size} bytes instead of {entry.bytes}"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    for name, entry in sorted(wanted.items()):
        try:
            if digest(checkpoint / name) != entry:
                return f"{name} does not have the contents that were written: its SHA-256 differs"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return None


def newest_valid(checkpoints: Path) -> tuple[int, list[str]]:
    """Find the newest checkpoint whose files are undamaged.

    Parameters
    ----------
    checkpoints : Path
        The folder `checkpoints` of a run; need not exist.

    Returns
    -------
    number : int
        Number of the checkpoint; 0 if there is none.
    problems : list of str
        One sentence for each newer checkpoint that cannot be used, newest first.

    Notes
    -----
    Reads all files of the checkpoints that it checks.
    """
    problems = []
    newest = 0
    for number in reversed(numbers(checkpoints)):
        what = damage(path_of(checkpoints, number))
        if what is None:
            newest = number
            break
        problems.append(f"Checkpoint {number} cannot be used: {what}. Folder {path_of(checkpoints, number)}.")
    instead = f"Checkpoint {newest} is used instead." if newest else "There is no other checkpoint to use."
    return newest, [f"{problem} {instead}" for problem in problems]


def read_scheduler(checkpoint: Path) -> dict[str, Any]:
    """Read the scheduler's state from a checkpoint; raises MpidataError if it cannot be read."""
    path = checkpoint / SCHEDULER
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MpidataError(
            f"Cannot read {path}: {error}. Remove the checkpoint's folder, and resume from the one before."
        ) from None
    if not isinstance(state, dict):
        raise MpidataError(f"{path} holds no JSON object. Remove the checkpoint's folder, and resume from another one.")
    return state
