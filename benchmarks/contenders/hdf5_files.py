"""Offline training: HDF5 files on disk, one per simulation, read in random order with a cold page cache."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contender import BATCH, ROOT, BenchmarkError, Cell, Peer, Result, run_processes, run_role
from benchmarks.gate import Gate

if TYPE_CHECKING:
    import torch

_STORE = ROOT / "build" / "benchmarks" / "hdf5"
_FILE_BYTES = 64 << 20
_MOST_BYTES = 3 << 30
_MOST_SAMPLES = 100_000
_EXPECTED = 1_200 << 20  # bytes/s; more than any disk delivered here with a cold cache
_PROCESSES = 2
_WARM_BATCHES = 2


@dataclasses.dataclass(frozen=True)
class _Hdf5(Peer):
    def measure(self, cell: Cell) -> Result:
        """Write the files if they do not exist, drop them from the page cache, and read."""
        folder = _STORE / str(cell.sample_bytes)
        count = _count(cell)
        if not (folder / f"{count}.whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            if shutil.disk_usage(ROOT).free < 4 * count * cell.sample_bytes:
                raise BenchmarkError("The disk has too little room.")
            run_processes([super().commands(cell)[0]], cell)
        _forget(folder)
        return run_processes([super().commands(cell)[1]], cell)


CONTENDERS = [
    _Hdf5(
        "HDF5 files",
        "random order, cold page cache, a DataLoader with two processes",
        "hdf5_files",
        "h5py",
        "HDF5 files",
    )
]


def _count(cell: Cell) -> int:
    wanted = min(int((cell.seconds + 1) * _EXPECTED), _MOST_BYTES) // cell.sample_bytes
    return max(cell.warm + 4 * BATCH, min(wanted, _MOST_SAMPLES)) // BATCH * BATCH


def _samples_in_file(cell: Cell) -> int:
    return min(128, max(8, _FILE_BYTES // cell.sample_bytes))


def _forget(folder: Path) -> None:
    """Drop the files, which are already on disk, from the page cache."""
    for path in folder.glob("*.h5"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def produce(cell: Cell, gate: Gate) -> None:
    import h5py
    import numpy as np

    folder, count, size = _STORE / str(cell.sample_bytes), _count(cell), _samples_in_file(cell)
    folder.mkdir(parents=True)
    for first in range(0, count, size):
        steps = min(size, count - first)
        path = folder / f"{first // size}.h5"
        with h5py.File(path, "w", libver="latest") as file:
            values = np.ones((steps, cell.elements), np.float32)
            values[:, 0] = values[:, -1] = np.arange(first, first + steps)
            file.create_dataset("u", data=values)
        with open(path, "rb") as written:
            os.fsync(written.fileno())
    (folder / f"{count}.whole").touch()
    (cell.folder / "result.json").write_text('{"samples": 0, "seconds": 1}')


class Samples:
    """A map-style dataset whose items are batches: (batch number, sample numbers)."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._size = _samples_in_file(cell)
        self._fields: dict[int, Any] = {}
        self._gate: Gate | None = None

    def _field(self, number: int) -> Any:
        import h5py

        if number not in self._fields:  # opened in the reading process: HDF5 does not survive a fork
            self._fields[number] = h5py.File(_STORE / str(self._cell.sample_bytes) / f"{number}.h5", "r")["u"]
        return self._fields[number]

    def __getitem__(self, task: tuple[int, list[int]]) -> torch.Tensor:
        import numpy as np
        import torch

        batch, numbers = task
        if batch >= _WARM_BATCHES:  # nothing is read before the clock starts
            self._gate = self._gate or Gate(self._cell.folder, self._cell.limit_s)
            self._gate.wait()
        rows = np.empty((len(numbers), self._cell.elements), np.float32)
        for i, number in enumerate(numbers):
            self._field(number // self._size).read_direct(rows, np.s_[number % self._size], np.s_[i])
        return torch.from_numpy(rows)


def consume(cell: Cell, gate: Gate) -> None:
    from torch.utils.data import DataLoader

    from benchmarks.consume import consume as take

    order = list(range(_count(cell)))
    random.Random(7).shuffle(order)
    tasks = [(i // BATCH, order[i : i + BATCH]) for i in range(0, len(order), BATCH)]
    dataset: Any = Samples(cell)
    loader: Any = DataLoader(dataset, batch_size=None, sampler=tasks, num_workers=_PROCESSES, prefetch_factor=2)
    taken: list[int] = []

    def batches() -> Iterator[torch.Tensor]:
        for number, batch in enumerate(loader):
            taken[:] = [number]
            yield batch

    take(batches(), cell, gate, warmed=lambda: taken[0] + 1 >= _WARM_BATCHES)
    os._exit(0)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
