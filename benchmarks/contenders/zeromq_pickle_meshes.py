"""pyzmq PUSH/PULL with pickled meshes, which the consumer joins into batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.contender import BATCH, Cell, run_role
from benchmarks.contenders.zeromq_pickle import open_socket
from benchmarks.gate import Gate
from benchmarks.mesh_sizes import nodes


def produce(cell: Cell, gate: Gate) -> None:
    import zmq

    from benchmarks.consume import stamp

    socket = open_socket(cell, gate, "produce")
    socket.sndtimeo = 100
    sizes = nodes(cell.sample_bytes)
    xy, u = np.ones((max(sizes), 2), np.float32), np.ones(max(sizes), np.float32)
    for number in gate.steps(cell.warm):
        count = sizes[number % len(sizes)]
        stamp(u[:count], number)
        while not gate.stopped:
            try:
                socket.send_pyobj({"xy": xy[:count], "u": u[:count]}, protocol=5, copy=False)
                break
            except zmq.Again:
                continue


def consume(cell: Cell, gate: Gate) -> None:
    import torch

    from benchmarks.consume import consume as take

    socket = open_socket(cell, gate, "consume")
    most = BATCH * max(nodes(cell.sample_bytes))
    memory = [{"xy": np.zeros((most, 2), np.float32), "u": np.zeros(most, np.float32)} for _ in range(2)]

    def ends() -> Iterator[torch.Tensor]:
        number = 0
        while True:
            batch = memory[number % 2]
            number += 1
            offsets = np.zeros(BATCH + 1, np.int64)
            for i in range(BATCH):
                mesh = socket.recv_pyobj()
                offsets[i + 1] = offsets[i] + len(mesh["u"])
                for name, array in batch.items():
                    array[offsets[i] : offsets[i + 1]] = mesh[name]
            yield torch.from_numpy(np.stack([batch["u"][offsets[:-1]], batch["u"][offsets[1:] - 1]], axis=1))

    take(ends(), cell, gate)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
