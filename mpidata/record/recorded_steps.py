"""The samples that earlier starts of a run have recorded, so that none is recorded twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.record.layout import Header, files_in, open_file, read_index
from mpidata.run.plan.routing import trainers_of

__all__ = ["RecordedSteps", "check_empty", "check_owner"]


class RecordedSteps:
    """The samples in the files of a record: one bit for each step.

    Parameters
    ----------
    folder : Path
        Of the record; need not exist.
    header : Header
        Of the file to be added.
    trainers : int
        Number of trainers: only samples for the header's trainer count. 0: all count, because with windows a sample may
        go to any trainer.

    Raises
    ------
    MpidataError
        A file cannot be read, or belongs to another run, or holds other samples.
    """

    def __init__(self, folder: Path, header: Header, trainers: int) -> None:
        self._bits: dict[int, npt.NDArray[np.uint8]] = {}
        for path in files_in(folder):
            with open_file(path) as file:
                found = Header.read(file, path)
                _check_run(found, header, path)
                if difference := header.difference(found):
                    raise MpidataError(
                        f"This job's samples differ from those in {path}: they have {difference}. Set another "
                        "`record.path` in the job file."
                    )
                columns = read_index(file, path)
                (_, simulation), (_, step) = next(columns), next(columns)
            own = simulation >= 0
            if trainers:
                own &= trainers_of(trainers, 1, simulation, step) == header.trainer
            self._add(simulation[own], step[own])

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._bits)

    @property
    def count(self) -> int:
        """Number of these samples."""
        return sum(int(np.unpackbits(bits).sum()) for bits in self._bits.values())

    def has(self, simulation: npt.NDArray[np.int64], step: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for each sample whether it is in the record."""
        return np.array([self._has(*one) for one in zip(simulation.tolist(), step.tolist(), strict=True)], bool)

    def _has(self, simulation: int, step: int) -> bool:
        bits = self._bits.get(simulation)
        return bits is not None and step // 8 < len(bits) and bool(bits[step // 8] >> (7 - step % 8) & 1)

    def _add(self, simulation: npt.NDArray[np.int64], step: npt.NDArray[np.int64]) -> None:
        order = np.argsort(simulation, kind="stable")
        numbers, starts = np.unique(simulation[order], return_index=True)
        for number, steps in zip(numbers.tolist(), np.split(step[order], starts[1:]), strict=False):
            present = np.zeros(int(steps.max()) + 1, bool)
            present[steps] = True
            before = self._bits.get(number)
            if before is not None:
                old = np.unpackbits(before).astype(bool)
                longer, shorter = (old, present) if len(old) > len(present) else (present, old)
                longer[: len(shorter)] |= shorter
                present = longer
            self._bits[number] = np.packbits(present)


def check_owner(folder: Path, header: Header) -> None:
    """Raise MpidataError unless a record is the run's own, or empty. One file suffices, as each was checked."""
    for path in files_in(folder)[:1]:
        with open_file(path) as file:
            _check_run(Header.read(file, path), header, path)


def check_empty(folder: Path) -> None:
    """Raise MpidataError if a folder has a record."""
    for path in files_in(folder)[:1]:
        with open_file(path) as file:
            raise _of_another(path, Header.read(file, path))


def _check_run(found: Header, header: Header, path: Path) -> None:
    if found.run != header.run:
        raise _of_another(path, found)


def _of_another(path: Path, found: Header) -> MpidataError:
    return MpidataError(
        f"{path} belongs to another run, {found.run}. Move the folder away, or give another `record.path` in the job "
        "file."
    )
