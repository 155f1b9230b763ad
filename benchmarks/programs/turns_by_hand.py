"""Two ranks of hand-written MPI that move batches when it is their turn, as turns_loading.py does.

Arguments: FOLDER KIND BYTES [PARTS].
KIND is `parcels`, 8 samples of BYTES in total as in batches.py, or `rows sent`, shuffled rows of PARTS as in rows.py.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import batches
import rows
import torch
from mpi4py import MPI
from turns_loading import DONE, PAUSE_S, STOP, TURN, gate, take_turns

ENDLESS = 1 << 40


class World:
    """MPI.COMM_WORLD in which a rank that waits for another one sleeps between turns."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self.rank = MPI.COMM_WORLD.rank

    def recv(self, source: int) -> Any:
        """Receive an object."""
        while not MPI.COMM_WORLD.iprobe(source=source):
            if self._words[STOP]:
                sys.exit()
            if self._words[TURN] == self._words[DONE]:
                time.sleep(PAUSE_S)
        return MPI.COMM_WORLD.recv(source=source)

    def wait(self, request: Any) -> None:
        """Wait for a message to be received."""
        while not request.Test() and not self._words[STOP]:
            if self._words[TURN] == self._words[DONE]:
                time.sleep(PAUSE_S)

    def __getattr__(self, name: str) -> Any:
        return getattr(MPI.COMM_WORLD, name)


def parcels(world: Any, size: int) -> Iterator[Any] | None:
    """Yield batches of samples without end."""
    samples = batches.Samples(size, 0.0)
    if world.rank == 0:
        batches.answer(world, samples)
        return None
    return (one.numpy() for one in batches.ask(world, samples))


def sent_rows(world: World, parts: str, batch: int) -> Iterator[Any] | None:
    """Yield batches of rows in random order without end."""
    if world.rank == 0:
        names = sorted(str(path) for path in Path(parts).glob("*.npy"))
        rows.send_rows(world, names, batch, ENDLESS, world.wait)
        return None
    epoch = rows.receive_rows(world, batch)
    return itertools.chain.from_iterable(epoch(number) for number in itertools.count())


def main(folder: str, kind: str, size: str, *parts: str) -> None:
    """Run one of the ranks."""
    torch.set_num_threads(1)
    words, memory = gate(folder)
    world = World(words)
    if kind == "parcels":
        given = parcels(world, int(size))
    else:
        given = sent_rows(world, parts[0], int(size) // (4 * rows.COLUMNS))
    if given is not None:
        take_turns(words, memory, given)


if __name__ == "__main__":
    main(*sys.argv[1:])
