"""pyzmq PUSH/PULL of the arrays' own memory: no pickle, and no avoidable copies."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.contender import BATCH, Cell, Peer, run_role
from benchmarks.contenders.zeromq_pickle import open_socket
from benchmarks.gate import Gate

CONTENDERS = [
    Peer(f"pyzmq, raw: {way}", "PUSH/PULL, copy=False from 64 KB", "zeromq_raw", "zmq", "pyzmq, raw", way)
    for way in ("ipc", "tcp")
]


def _is_back(tracker: Any, gate: Gate) -> bool:
    return bool(tracker.done) or gate.stopped


def produce(cell: Cell, gate: Gate) -> None:
    import numpy as np
    import zmq

    from benchmarks.consume import stamp

    socket = open_socket(cell, gate, "produce")
    socket.sndtimeo = 100
    lent = cell.sample_bytes > zmq.COPY_THRESHOLD  # below it pyzmq copies, which is faster
    pool = [np.ones(cell.elements, np.float32) for _ in range(cell.queue if lent else 1)]
    trackers: list[zmq.MessageTracker | None] = [None] * len(pool)
    for number in gate.steps(cell.warm):
        k = number % len(pool)
        tracker = trackers[k]
        if tracker is not None:
            gate.wait_until(functools.partial(_is_back, tracker, gate))
        stamp(pool[k], number)
        while not gate.stopped:
            try:
                trackers[k] = socket.send(pool[k], copy=False, track=True) if lent else socket.send(pool[k])
                break
            except zmq.Again:
                continue


def consume(cell: Cell, gate: Gate) -> None:
    import numpy as np
    import torch

    from benchmarks.consume import BatchRows
    from benchmarks.consume import consume as take

    socket = open_socket(cell, gate, "consume")
    copied = cell.sample_bytes <= 65536

    def batches() -> Iterator[torch.Tensor]:
        memory = BatchRows(cell.elements)
        while True:
            rows = memory.take()
            for i in range(BATCH):
                message = socket.recv() if copied else socket.recv(copy=False).buffer
                rows[i] = np.frombuffer(message, np.float32)
            yield torch.from_numpy(rows)

    take(batches(), cell, gate)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
