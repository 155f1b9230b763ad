"""An in-memory Redis server: one SET by the producer and one GET by the consumer per sample."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Iterator
from typing import Any

from benchmarks.contender import BATCH, Cell, Peer, run_role
from benchmarks.gate import Gate

_PIPELINE_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True)
class _Redis(Peer):
    def missing(self) -> str | None:
        return super().missing() if shutil.which("redis-server") else "no redis-server"

    def commands(self, cell: Cell) -> list[list[str]]:
        server = ["redis-server", "--port", "0", "--unixsocket", f"{cell.folder}/redis", "--save", "", "--appendonly"]
        return [["timeout", f"{cell.limit_s:.0f}", *server, "no"], *super().commands(cell)]


CONTENDERS = [
    _Redis(
        "Redis", "SET and GETDEL over a Unix socket; the GETs of a batch are pipelined", "redis_store", "redis", "Redis"
    )
]


def _connect(cell: Cell, gate: Gate) -> Any:
    import redis

    gate.wait_until((cell.folder / "redis").exists)
    store = redis.Redis(unix_socket_path=str(cell.folder / "redis"), socket_timeout=cell.limit_s)
    store.ping()
    return store


def _has_room(gate: Gate, taken: int) -> bool:
    return gate.taken > taken or gate.stopped


def _has_more(gate: Gate, made: int) -> bool:
    return gate.made > made


def produce(cell: Cell, gate: Gate) -> None:
    import numpy as np

    from benchmarks.consume import stamp

    store = _connect(cell, gate)
    values = np.ones(cell.elements, np.float32)
    data = values.data.cast("B")
    for number in gate.steps(cell.warm):
        stamp(values, number)
        # Redis neither holds the producer back nor notifies the consumer: shared memory does both at no cost.
        if number - gate.taken >= cell.queue:
            gate.wait_until(functools.partial(_has_room, gate, number - cell.queue))
        store.set(f"sample{number}", data)
        gate.made = number + 1
    store.shutdown(nosave=True)


def consume(cell: Cell, gate: Gate) -> None:
    import numpy as np
    import torch

    from benchmarks.consume import BatchRows
    from benchmarks.consume import consume as take

    store = _connect(cell, gate)
    most = max(1, _PIPELINE_BYTES // cell.sample_bytes)

    def batches() -> Iterator[torch.Tensor]:
        memory = BatchRows(cell.elements)
        taken = 0
        while True:
            rows, n = memory.take(), 0
            while n < BATCH:
                if gate.made == taken:
                    gate.wait_until(functools.partial(_has_more, gate, taken))
                pipeline = store.pipeline(transaction=False)
                count = min(most, BATCH - n, gate.made - taken)
                for number in range(taken, taken + count):
                    pipeline.getdel(f"sample{number}")
                for data in pipeline.execute():
                    rows[n] = np.frombuffer(data, np.float32)
                    n += 1
                taken += count
                gate.taken = taken
            yield torch.from_numpy(rows)

    take(batches(), cell, gate)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
