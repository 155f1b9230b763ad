"""Finding the folders of existing runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder

__all__ = ["find_run", "find_runs"]

_DEEPEST = 2  # folders between the given one and a run folder: OUTPUT/NAME/NUMBER


def find_run(path: str | Path) -> RunFolder:
    """Find a run folder by its path, or by a link to it.

    Raises
    ------
    LaunchError
        It is not a run folder, or other users can have changed it.
    """
    from mpidata.config.load import no_utf_8  # loads pydantic, which a rank that only joins never needs

    run = RunFolder(Path(os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)))
    if (name := no_utf_8(str(run.path))) is not None:
        raise LaunchError(f"The name of the run folder {name} is not UTF-8, so its files cannot hold it. Rename it.")
    run.check()
    return run


def find_runs(folder: str | Path) -> list[RunFolder]:
    """Find the run folders in a folder, or the folder itself; sorted by name and number.

    Raises
    ------
    LaunchError
        There is no such folder.
    """
    top = Path(os.path.abspath(folder))
    if not os.path.isdir(top):
        raise LaunchError(
            f"{folder} is not a folder. Give the folder set by `output` in the job file, for example runs."
        )
    found = [path for path in _folders(top, _DEEPEST) if os.path.exists(RunFolder(path).plan)]
    runs = sorted(found, key=lambda path: (path.parent, int(path.name) if path.name.isdecimal() else -1, path.name))
    return [RunFolder(path) for path in runs if not path.is_symlink()]


def _folders(top: Path, depth: int) -> Iterator[Path]:
    """Find a folder and those up to `depth` levels below, except those that cannot be read or that vanish meanwhile."""
    yield top
    with contextlib.suppress(OSError), os.scandir(top) as entries:
        for path in [top / entry.name for entry in entries if depth and os.path.isdir(entry)]:
            yield from _folders(path, depth - 1)
