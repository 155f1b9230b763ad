"""A program that only writes files: runs it, and sends what it writes; started in its place by a carrier.

`python -m mpidata.solver.output SETTINGS command...`, with the keys of `solvers.output` in base64, as
braces have a meaning there.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

import mpidata.solver
from mpidata.errors import MpidataError
from mpidata.solver.group_rank import Simulation
from mpidata.solver.renames import Renames

__all__ = ["Files", "read"]

_LOOK_EVERY_S = 0.05
Fields = Mapping[str, npt.NDArray[Any]]


class Files:
    """The files that a program writes, in numeric order.

    Parameters
    ----------
    patterns : mapping of str to str
        Pattern for each field; for "" one whose files have all fields.
    folder : Path
        Where they are looked for.
    """

    def __init__(self, patterns: Mapping[str, str], folder: Path) -> None:
        self._patterns = patterns
        self._folder = folder
        self._renames = Renames()
        self._renames.watch(folder)

    def complete(self, ended: bool) -> Iterator[dict[str, Path]]:
        """Yield those that are complete, by field.

        They were renamed to their names, or the next ones are there, or the program has ended well.
        """
        found = {field: sorted(self._folder.glob(p), key=self._place) for field, p in self._patterns.items()}
        for folder in {path.parent for paths in found.values() for path in paths}:
            self._renames.watch(folder)
        count = min(map(len, found.values()))
        for i in range(count):
            files = {field: paths[i] for field, paths in found.items()}
            if i == count - 1 and not ended and not all(map(self._renames.take, files.values())):
                return
            yield files

    def remove(self, files: Mapping[str, Path]) -> None:
        """Remove files that were read."""
        for path in files.values():
            path.unlink()
            self._renames.forget(path)

    def _place(self, path: Path) -> tuple[list[float], str]:
        """Numbers in the name, and in those of the folders before it: 2 before 10, and 0.25 before 0.5."""
        name = str(path.relative_to(self._folder))
        return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", name)], name


def read(files: Mapping[str, Path], names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Read the fields of one step from npy, npz or HDF5 files.

    Parameters
    ----------
    files : mapping of str to Path
        By field; "": a file that has all.
    names : list of str
        The fields of the job.
    """
    fields: dict[str, npt.NDArray[Any]] = {}
    for field, path in files.items():
        try:
            fields |= _read_file(path, [field] if field else names)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ValueError(f"cannot read {path.name}: {error}") from error
    return fields


def _read_file(path: Path, wanted: list[str]) -> dict[str, npt.NDArray[Any]]:
    if path.suffix == ".npy":
        if len(wanted) > 1:
            raise MpidataError(
                f"{path} has one array, but the job has the fields {', '.join(wanted)}. Name a pattern "
                "for each in 'solvers.output.files'."
            )
        return {wanted[0]: np.load(path)}
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name] for name in wanted}
    if path.suffix in (".h5", ".hdf5"):
        import h5py

        with h5py.File(path) as file:
            return {name: file[name][()] for name in wanted}
    raise MpidataError(f"{path} is no npy, npz or HDF5 file. Name a function in 'solvers.output.reader'.")


def _samples(
    files: Mapping[str, Path], step: int, simulation: Simulation, settings: Mapping[str, Any], names: list[str]
) -> Iterator[tuple[float, Fields]]:
    if settings["reader"] is not None:
        module, _, name = settings["reader"].partition(":")
        yield from getattr(importlib.import_module(module), name)(next(iter(files.values())), simulation)
        return
    stamp = re.search(settings["time"], next(iter(files.values())).name) if settings["time"] else None
    yield float(stamp[1]) if stamp else float(step), read(files, names)


def _run(command: list[str], simulation: Simulation, settings: Mapping[str, Any]) -> str | None:
    """Run the program; returns how it failed, or None."""
    rank = mpidata.solver.joined()
    names = [field.name for field in rank.plan.fields] if rank.plan else []
    patterns = settings["files"] if isinstance(settings["files"], dict) else {"": settings["files"]}
    written = Files(patterns, Path.cwd())
    variables = {name: value for name, value in os.environ.items() if name != "MPIDATA_CARRIER"}
    # In a session of its own, as a script may signal all processes of its group.
    process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
    while True:
        status = process.poll()  # before the look at what it has left
        well = status in settings["success"]
        taken = 0
        for files in written.complete(well):
            for at, fields in _samples(files, rank.steps, simulation, settings, names):
                simulation.put(**fields)
                simulation.step(at)
            written.remove(files)
            taken += 1
        if status is not None:
            break
        if not taken:
            time.sleep(_LOOK_EVERY_S)
    if not well:
        return f"ended with {f'signal {-status}' if status < 0 else f'exit status {status}'}"
    return None if rank.steps else f"wrote no file of {settings['files']!r}"


def main(arguments: list[str]) -> int:
    """Run the one simulation that this process is for."""
    settings = json.loads(base64.urlsafe_b64decode(arguments[0] + "=" * (-len(arguments[0]) % 4)))
    sys.path.insert(0, settings["folder"])
    failed = None
    for simulation in mpidata.solver.simulations():
        failed = _run(arguments[1:], simulation, settings)
        if failed:
            rank = mpidata.solver.joined()
            rank.fail(rank.library.mpidata_fail_try, failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
