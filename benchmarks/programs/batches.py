"""A loop over a map-style dataset without training: batches.py KIND FOLDER BYTES BUSY_MS SECONDS.

A batch has 8 samples of BYTES in total, each of which takes BUSY_MS to compute. The loop reads every number.
Writes batches.json into the folder: bytes/s and batches/s after the first four batches, and seconds to the first.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

BATCH, WARM = 8, 4
ENDLESS = 1 << 20


def ahead(size: int) -> int:
    """Number of batches requested in advance, the same as in mpidata.DataLoader."""
    return max(2, min(16, (8 << 20) // size))


class Samples(Dataset[torch.Tensor]):
    """A few samples in memory, repeated."""

    def __init__(self, size: int, busy_s: float) -> None:
        self.samples = [torch.full((size // BATCH // 4,), float(i)) for i in range(16)]
        self.busy_s = busy_s
        self.ahead = ahead(size)

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.busy_s:
            until = time.thread_time() + self.busy_s
            while time.thread_time() < until:
                pass
        return self.samples[index % 16]


def main(kind: str, folder: str, size: str, busy_ms: str, seconds: str) -> None:
    """Run one way."""
    begun = time.perf_counter()
    batches = KINDS[kind](Samples(int(size), float(busy_ms) / 1e3))
    if batches is not None:
        told = loop(batches, float(seconds), begun)
        Path(folder, "batches.json").write_text(json.dumps(told))
        os._exit(0) if kind == "rpc" else None


def loop(batches: Iterator[torch.Tensor], seconds: float, begun: float) -> dict[str, float]:
    """Take batches for `seconds`."""
    waits: list[float] = []
    first, moved, started, before = 0.0, 0, 0.0, 0.0
    for number, batch in enumerate(batches):
        came = time.perf_counter()
        if number == 0:
            first = came - begun
        if number >= WARM:
            waits.append(came - before)
            moved += batch.numel() * batch.element_size()
        np.add.reduce(batch.numpy(), axis=None)
        before = time.perf_counter()
        if number + 1 == WARM:
            started = before
        if number >= WARM and before > started + seconds:
            break
    return {
        "first_s": first,
        "bytes_per_s": moved / (before - started),
        "batches_per_s": len(waits) / (before - started),
        "wait_us": 1e6 * float(np.median(waits)),
        "wait_p99_us": 1e6 * float(np.quantile(waits, 0.99)),
    }


def mpidata(samples: Samples) -> Iterator[torch.Tensor]:
    """Use mpidata as its users would."""
    import mpidata

    return iter(mpidata.DataLoader(samples, BATCH))


def torchs(samples: Samples) -> Iterator[torch.Tensor]:
    """torch's DataLoader with one worker."""
    return iter(DataLoader(samples, BATCH, num_workers=1, prefetch_factor=samples.ahead))


def by_hand(samples: Samples) -> Iterator[torch.Tensor] | None:
    """Send batches between two ranks by Issend of a pickled header and of the memory; some are requested in advance."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        answer(world, samples)
        return None
    return ask(world, samples)


def answer(world: Any, samples: Samples) -> None:
    sent: list[tuple[Any, ...]] = []
    while (number := world.recv(source=1)) >= 0:
        batch = torch.stack([samples[index] for index in range(number * BATCH, (number + 1) * BATCH)])
        memory: list[pickle.PickleBuffer] = []
        header = pickle.dumps(batch.numpy(), 5, buffer_callback=memory.append)
        sent.append((world.Issend(header, 1), world.Issend(memory[0].raw(), 1), header, batch))
        if len(sent) > samples.ahead:
            for request in sent.pop(0)[:2]:
                request.Wait()


def ask(world: Any, samples: Samples) -> Iterator[torch.Tensor]:
    from mpi4py import MPI

    # A buffer is free again when the loop no longer needs its batch.
    buffers = [np.empty(samples.samples[0].numel() * 4 * BATCH, np.uint8) for _ in range(samples.ahead + 2)]
    header = np.empty(4096, np.uint8)
    for number in range(samples.ahead):
        world.send(number, 0)
    try:
        for number in range(ENDLESS // BATCH):
            status = MPI.Status()
            world.Recv(header, 0, status=status)
            memory = buffers[number % len(buffers)]
            world.Recv(memory, 0)
            world.send(number + samples.ahead, 0)
            yield torch.from_numpy(pickle.loads(header[: status.Get_count(MPI.BYTE)], buffers=[memory]))
    finally:
        world.send(-1, 0)
        world.Abort(0)


def rpc(samples: Samples) -> Iterator[torch.Tensor]:
    """RPCDataloader with one worker, which is a separate process."""
    import socket
    import subprocess

    import rpcdataloader

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = f"import rpcdataloader; rpcdataloader.run_worker('127.0.0.1', {port}, parallel=1)"
    worker = subprocess.Popen([sys.executable, "-c", serve], cwd=Path(__file__).parent)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert worker.poll() is None
        time.sleep(0.05)
    # Imported by the name of a module, so that the worker finds it.
    from batches import Samples as Named

    remote = rpcdataloader.RPCDataset(
        [f"127.0.0.1:{port}"], Named, samples.samples[0].numel() * 4 * BATCH, samples.busy_s
    )
    return iter(
        rpcdataloader.RPCDataloader(remote, batch_size=BATCH, sampler=range(ENDLESS), prefetch_factor=samples.ahead)
    )


KINDS: dict[str, Callable[[Samples], Iterator[torch.Tensor] | None]] = {
    "mpidata": mpidata,
    "torch": torchs,
    "by_hand": by_hand,
    "rpc": rpc,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
