"""Files in memory: a producer writes and renames one per sample; the loop reads and removes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.consume import BatchRows
from benchmarks.contender import Cell
from benchmarks.many_to_one.board import BATCH, Board, produce
from benchmarks.many_to_one.loop import consume
from benchmarks.many_to_one.roles import run_role


def put_files(cell: Cell, board: Board, producer: int, producers: int) -> None:
    """Write each sample to its own file, which is renamed when complete."""
    ready = make_folder(cell)

    def put(number: int, values: Any) -> None:
        board.wait_for_room(producer, cell.queue)
        part = cell.folder / f"part-{producer}"
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        data = values.data.cast("B")
        while data:
            data = data[os.write(file, data) :]
        os.close(file)
        part.rename(ready / f"{number}-{producer}")
        board.put_one(producer)

    produce(cell, board, producer, producers, put)


def make_folder(cell: Cell) -> Path:
    """Make the folder for complete files."""
    ready = cell.folder / "ready"
    ready.mkdir(exist_ok=True)
    return ready


def take_files(cell: Cell, board: Board, producers: int) -> None:
    """Read the available files into batches, in the order of the listings."""
    ready, memory = make_folder(cell), BatchRows(cell.elements, BATCH)

    def names() -> Iterator[str]:
        while True:
            board.wait_until(lambda: any(board.waiting(producer) for producer in range(producers)))
            yield from os.listdir(ready)

    def batches() -> Iterator[Any]:
        each = names()
        while True:
            rows = memory.take()
            for row in rows:
                name = next(each)
                file = os.open(ready / name, os.O_RDONLY)
                read_whole(file, row)
                os.close(file)
                os.unlink(ready / name)
                board.take(int(name.partition("-")[2]))
            yield rows

    consume(batches(), cell, board, producers)


def read_whole(file: int, row: Any) -> None:
    """Read a file into reused memory."""
    data = row.data.cast("B")
    while data:
        data = data[os.readv(file, [data]) :]


if __name__ == "__main__":
    run_role(put_files, take_files)
