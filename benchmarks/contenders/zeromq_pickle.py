"""pyzmq PUSH/PULL with pickled arrays, as in the demo from which online training often starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.contender import BATCH, Cell, Peer, run_role
from benchmarks.gate import Gate

CONTENDERS = [
    Peer(f"pyzmq, pickle: {way}", "PUSH/PULL, pickle protocol 5", "zeromq_pickle", "zmq", "pyzmq, pickle", way)
    for way in ("ipc", "tcp")
]


def open_socket(cell: Cell, gate: Gate, role: str) -> Any:
    """Return a socket whose queues are as long as those of the other contenders."""
    import zmq

    socket = zmq.Context.instance().socket(zmq.PUSH if role == "produce" else zmq.PULL)
    socket.set_hwm(max(2, cell.queue // 2))  # on each side
    socket.linger = 0
    address = cell.folder / "address"
    if role == "produce":
        gate.wait_until(address.exists)
        socket.connect(address.read_text())
    else:
        socket.bind("tcp://127.0.0.1:*" if cell.setting == "tcp" else f"ipc://{cell.folder}/socket")
        (cell.folder / "new").write_text(socket.last_endpoint.decode())
        (cell.folder / "new").rename(address)
    return socket


def produce(cell: Cell, gate: Gate) -> None:
    import numpy as np
    import zmq

    from benchmarks.consume import stamp

    socket = open_socket(cell, gate, "produce")
    socket.sndtimeo = 100
    values = np.ones(cell.elements, np.float32)
    for number in gate.steps(cell.warm):
        stamp(values, number)
        while not gate.stopped:
            try:
                socket.send_pyobj(values, protocol=5, copy=False)
                break
            except zmq.Again:
                continue


def consume(cell: Cell, gate: Gate) -> None:
    import torch

    from benchmarks.consume import BatchRows
    from benchmarks.consume import consume as take

    socket = open_socket(cell, gate, "consume")

    def batches() -> Iterator[torch.Tensor]:
        memory = BatchRows(cell.elements)
        while True:
            rows = memory.take()
            for i in range(BATCH):
                rows[i] = socket.recv_pyobj()
            yield torch.from_numpy(rows)

    take(batches(), cell, gate)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
