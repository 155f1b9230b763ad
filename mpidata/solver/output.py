"""Runs a program that only writes files, and sends their fields. A carrier starts this in place of the program.

The arguments are SETTINGS and the command. SETTINGS are the keys of `solvers.output`, in base64 because braces have a
meaning in arguments.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

import mpidata.solver
from mpidata.dtypes import BFLOAT16, BITS_OF_BFLOAT16, dataset_dtype
from mpidata.errors import MpidataError, SimulationCancelled, as_line
from mpidata.solver.constants import Constants
from mpidata.solver.output_files import Files, WrongFilesError, removed_before_read
from mpidata.solver.simulation import Simulation

__all__ = ["read"]

_LOOK_EVERY_S = 0.05
_PATIENCE_S = 5.0  # for the end after SIGTERM
Fields = Mapping[str, Any]  # arrays, as GroupRank.array makes them


def read(files: Mapping[str, Path], names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Read the fields of one step from npy, npz or HDF5 files.

    Parameters
    ----------
    files : mapping of str to Path
        The file of each field; "": one file that has all fields.
    names : list of str
        The fields of the job.

    Raises
    ------
    WrongFilesError
        A file is damaged, or lacks a field.
    """
    fields: dict[str, npt.NDArray[Any]] = {}
    for field, path in files.items():
        try:
            fields |= _read_file(path, [field] if field else names)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise WrongFilesError(f"wrote {path.name}, which cannot be read: {as_line(error)}") from None
    return fields


def _read_file(path: Path, wanted: list[str]) -> dict[str, npt.NDArray[Any]]:
    if path.suffix == ".npy":
        if len(wanted) > 1:
            raise MpidataError(
                f"{path} has one array, but the job has the fields {', '.join(wanted)}. Name a pattern "
                "for each in 'solvers.output.files'."
            )
        return {wanted[0]: _known(np.load(path))}
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: _known(arrays[name]) for name in _present(path, wanted, arrays)}
    if path.suffix in (".h5", ".hdf5"):
        import h5py

        with h5py.File(path) as file:
            return {name: _of_dataset(file[name]) for name in _present(path, wanted, file)}
    raise MpidataError(f"{path} is not an npy, npz or HDF5 file. Name a function in 'solvers.output.reader'.")


def _known(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View raw elements of 2 bytes, as NumPy and h5py write ml_dtypes' bfloat16, as bfloat16."""
    return array.view(BITS_OF_BFLOAT16) if array.dtype == np.dtype("V2") else array


def _of_dataset(dataset: Any) -> npt.NDArray[Any]:
    array = _known(np.asarray(dataset[()]))
    return array.view(BITS_OF_BFLOAT16) if dataset_dtype(dataset) == BFLOAT16 else array


def _present(path: Path, wanted: list[str], held: Iterable[str]) -> list[str]:
    missing = [name for name in wanted if name not in held]
    if missing:
        raise WrongFilesError(f"wrote {path.name}, which has no {missing[0]!r}, but {', '.join(held) or 'nothing'}")
    return wanted


def _samples(
    files: Mapping[str, Path], at: float, simulation: Simulation, settings: Mapping[str, Any], names: list[str]
) -> Iterator[tuple[float, Fields]]:
    if settings["reader"] is None:
        yield at, read(files, names)
        return
    module, _, name = settings["reader"].partition(":")
    path = next(iter(files.values()))
    try:
        given = getattr(importlib.import_module(module), name)(path, simulation)
        for step in given if isinstance(given, Iterable) else [given]:
            if isinstance(step, Constants):
                yield 0.0, step
                continue
            if not isinstance(step, tuple) or len(step) != 2 or not isinstance(step[1], Mapping):
                said = f"{settings['reader']} (solvers.output.reader) must yield (time, {{field: array}}), but yielded"
                raise TypeError(f"{said} {step!r:.60}")
            yield step
    except SystemExit as error:
        raise RuntimeError(f"{settings['reader']} (solvers.output.reader) has called exit({error.code})") from error
    except Exception:
        print(f"mpidata: {settings['reader']} was reading {path}", file=sys.stderr)
        raise


def _has_shape(shape: tuple[int, ...], declared: tuple[int | str, ...]) -> bool:
    """Return whether a shape is the declared one; an extent that is a name may have any value."""
    alike = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(isinstance(want, str) or have == want for have, want in alike)


class _Reading:
    """Reads the files of a simulation's program."""

    def __init__(self, simulation: Simulation, settings: Mapping[str, Any]) -> None:
        self._rank = mpidata.solver.joined()
        declared = self._rank.plan.fields if self._rank.plan else ()
        self._names = [field.name for field in declared if not field.per_simulation]
        self._shapes = {field.name: field.shape for field in declared}
        self._simulation, self._settings = simulation, settings
        patterns = settings["files"] if isinstance(settings["files"], dict) else {"": settings["files"]}
        constants = [field.name for field in declared if field.per_simulation]
        self._constants = {name: patterns.get(name) for name in constants} if settings["reader"] is None else {}
        of_steps = {field: pattern for field, pattern in patterns.items() if field not in constants}
        self._written = Files(of_steps, Path.cwd(), settings["time"])
        self._files = 0

    def take(self, ended_well: bool) -> int:
        """Send and remove complete files; returns the number of steps that had files. Raises WrongFilesError."""
        taken = 0
        for files in self._written.complete(ended_well):
            named = self._written.time_of(next(iter(files.values())))
            at = float(self._rank.steps) if named is None else named
            try:
                self._put_constants(files)
                for when, fields in _samples(files, at, self._simulation, self._settings, self._names):
                    arrays: Fields = {field: self._rank.array(field, values) for field, values in fields.items()}
                    self._check(next(iter(files.values())).name, when, arrays)
                    self._simulation.put(**arrays)
                    if not isinstance(fields, Constants):
                        self._simulation.step(when)
            except (MpidataError, SimulationCancelled):
                raise
            except Exception:
                if gone := [path for path in files.values() if not path.exists()]:
                    raise WrongFilesError(removed_before_read(gone[0].name)) from None
                raise
            self._written.remove(files)
            taken += 1
        self._files += taken
        return taken

    def _put_constants(self, files: Mapping[str, Path]) -> None:
        """Before the first step, put the constants: from their own files, or from the first file of all."""
        constants, self._constants = self._constants, {}
        for name, pattern in constants.items():
            path = files[""] if pattern is None else self._only_file(name, pattern, files)
            values: Fields = {field: self._rank.array(field, of) for field, of in read({name: path}, [name]).items()}
            self._check(path.name, 0.0, values)
            self._simulation.put(**values)
            if pattern is not None:
                path.unlink()

    def _only_file(self, field: str, pattern: str, files: Mapping[str, Path]) -> Path:
        found = sorted(Path.cwd().glob(pattern))
        if len(found) == 1:
            return found[0]
        there = f"{found[0].name} and {found[1].name}" if found else "no file"
        first = next(iter(files.values())).name
        raise WrongFilesError(
            f"wrote {there} of {pattern!r} before {first}, but field {field!r} is sent once, before the first step"
        )

    def _check(self, name: str, when: Any, fields: Fields) -> None:
        """Raise WrongFilesError for a wrong shape, as a full disk causes, or a time that is not finite."""
        for field, values in fields.items():
            if not _has_shape(values.shape, self._shapes.get(field, values.shape)):
                said = (
                    f"wrote {name}, in which field {field!r} has shape {values.shape}, but {self._shapes[field]} is "
                    "declared"
                )
                raise WrongFilesError(said)
        if isinstance(when, float) and not math.isfinite(when):
            raise WrongFilesError(f"wrote {name}, whose time is {when}")

    def why_nothing(self) -> str | None:
        """Return why there was no step; None if there was one."""
        if self._rank.steps:
            return None
        if self._files:
            return f"wrote files from which {self._settings['reader']} yielded no step"
        return f"wrote no file of {self._settings['files']!r}"


def _run(command: list[str], simulation: Simulation, settings: Mapping[str, Any]) -> str | None:
    """Run the program; returns how it failed, or None if it succeeded."""
    reading = _Reading(simulation, settings)
    variables = {name: value for name, value in os.environ.items() if name != "MPIDATA_CARRIER"}
    # In a separate session, because a script may signal all processes of its group.
    process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
    cancelled = mpidata.solver.joined().library.mpidata_carried_cancelled
    while True:
        status = process.poll()  # before the files are looked up
        well = status in settings["success"]
        try:
            taken = reading.take(well)
        except WrongFilesError as error:
            return str(error)
        except SimulationCancelled:
            _end(process)
            return None
        if cancelled():
            _end(process)
            return None
        if status is not None:
            break
        if not taken:
            time.sleep(_LOOK_EVERY_S)
    if not well:
        return f"ended with {f'signal {-status}' if status < 0 else f'exit status {status}'}"
    return reading.why_nothing()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program whose simulation is cancelled, with all processes in its process group."""
    by = time.monotonic() + _PATIENCE_S
    with contextlib.suppress(ProcessLookupError):  # when all have ended
        os.killpg(process.pid, signal.SIGTERM)
        while True:
            process.poll()  # reaps it
            os.killpg(process.pid, 0 if time.monotonic() < by else signal.SIGKILL)
            time.sleep(_LOOK_EVERY_S)
    process.wait()


def main(arguments: list[str]) -> int:
    """Run the one simulation that this process is for."""
    settings = json.loads(base64.urlsafe_b64decode(arguments[0] + "=" * (-len(arguments[0]) % 4)))
    sys.path.insert(0, settings["folder"])
    for simulation in mpidata.solver.simulations():
        failed = _run(arguments[1:], simulation, settings)
        if failed:
            rank = mpidata.solver.joined()
            rank.fail(rank.library.mpidata_fail_try, failed)
            rank.library.mpidata_carried_last_words(failed.encode())
            sys.stdout.flush()
            os._exit(1)  # a later call would withdraw these last words
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
