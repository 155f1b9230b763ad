"""Trainer: takes batches from a loader each time it is its turn. Arguments: FOLDER KIND BYTES [PARTS].

KIND is `batches`, 8 samples of BYTES in total from a DataLoader, or `rows`, shuffled float32 rows from a FileDataset
over PARTS, which are .npy files. The loop reads every number, as in batches.py and rows.py.

The file imports nothing else from the benchmarks, because it also runs in the other checkout's environment.
"""

import glob
import mmap
import struct
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch

import mpidata

STOP, TURN, DONE, SECONDS, COUNT = 1, 6, 7, 8, 9
PAUSE_S = 0.5e-3
BATCH, COLUMNS = 8, 21


class Samples(torch.utils.data.Dataset[torch.Tensor]):
    """A few samples in memory, repeated."""

    def __init__(self, size: int) -> None:
        self.samples = [torch.full((size // BATCH // 4,), float(i)) for i in range(16)]

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.samples[index % 16]


def batches(kind: str, size: int, parts: str = "") -> Iterator[np.ndarray]:
    """Yield batches without end."""
    if kind == "batches":
        yield from (one.numpy() for one in mpidata.DataLoader(Samples(size), BATCH))
    rows = mpidata.FileDataset(sorted(glob.glob(parts + "/*.npy")), size // (4 * COLUMNS))
    while True:
        yield from (one["data"].numpy() for one in rows)


def gate(folder: str) -> tuple[memoryview, mmap.mmap]:
    """Return the words of the gate and its memory."""
    with open(folder + "/gate", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 4096)
    return memoryview(memory).cast("q"), memory


def take_turns(words: memoryview, memory: mmap.mmap, given: Iterator[np.ndarray]) -> None:
    """Take turns until the gate stops it."""
    turn = 0
    while True:
        while words[TURN] == turn and not words[STOP]:
            time.sleep(PAUSE_S)
        if words[STOP]:
            return
        start = time.monotonic()
        for _ in range(words[COUNT]):
            np.add.reduce(next(given), axis=None)
        struct.pack_into("d", memory, 8 * SECONDS, time.monotonic() - start)
        turn = words[DONE] = words[TURN]


def main(folder: str, kind: str, size: str, *parts: str) -> None:
    """Take batches when it is this side's turn."""
    torch.set_num_threads(1)
    take_turns(*gate(folder), batches(kind, int(size), *parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
