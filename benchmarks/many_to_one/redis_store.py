"""An in-memory Redis server: a SET by the producer and a GETDEL by the training loop per sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.consume import BatchRows
from benchmarks.contender import Cell
from benchmarks.many_to_one.board import BATCH, Board, produce
from benchmarks.many_to_one.loop import consume
from benchmarks.many_to_one.roles import run_role

_PIPELINE_BYTES = 4 << 20
_READ = 256 << 10  # bytes per read; a quarter more 4 MB samples than with the default of 64 KiB


def _connect(cell: Cell, board: Board) -> Any:
    import redis

    board.wait_until((cell.folder / "redis").exists)
    store = redis.Redis(
        unix_socket_path=str(cell.folder / "redis"), socket_timeout=cell.limit_s, socket_read_size=_READ
    )
    store.ping()
    return store


def put_values(cell: Cell, board: Board, producer: int, producers: int) -> None:
    """SET each sample; shared memory counts them at no cost to Redis."""
    store = _connect(cell, board)

    def put(number: int, values: Any) -> None:
        board.wait_for_room(producer, cell.queue)
        store.set(f"{number}-{producer}", values.data.cast("B"))
        board.put_one(producer)

    produce(cell, board, producer, producers, put)


def take_values(cell: Cell, board: Board, producers: int) -> None:
    """GETDEL the available samples, from each producer in turn."""
    store, memory = _connect(cell, board), BatchRows(cell.elements, BATCH)
    most = max(1, _PIPELINE_BYTES // cell.sample_bytes)

    def values() -> Iterator[bytes]:
        while True:
            board.wait_until(lambda: any(board.waiting(producer) for producer in range(producers)))
            there = [(number, producer) for producer in range(producers) for number in board.waiting(producer)]
            there.sort()
            for first in range(0, len(there), most):
                pipeline = store.pipeline(transaction=False)
                for number, producer in there[first : first + most]:
                    pipeline.getdel(f"{number}-{producer}")
                    board.take(producer)
                yield from pipeline.execute()

    def batches() -> Iterator[Any]:
        each = values()
        while True:
            rows = memory.take()
            for row in rows:
                row[:] = np.frombuffer(next(each), np.float32)
            yield rows

    consume(batches(), cell, board, producers)
    board.wait_until_all_left(producers)
    store.shutdown(nosave=True)


if __name__ == "__main__":
    run_role(put_values, take_values)
