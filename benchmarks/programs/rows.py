"""A loop over rows of files without training: rows.py KIND FOLDER PARTS FORMAT BATCH EPOCHS.

Each KIND is a way to bring shuffled batches to the loop, which reads every number. Writes rows.json into the folder:
seconds to the first batch, rows/s from the second epoch on, the loop's wait for a batch, and this wait if each step
sleeps longer than a batch takes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

COLUMNS = 21
Array = npt.NDArray[Any]
Epochs = Callable[[int], Iterator[Array]]


def main(kind: str, folder: str, parts: str, form: str, batch: str, epochs: str) -> None:
    """Run one way."""
    begun = time.perf_counter()
    names = sorted(str(path) for path in Path(parts).glob(f"*.{form}"))
    made = KINDS[kind](names, int(batch))
    if made is not None:
        told = loop(made, int(epochs), begun)
        Path(folder, "rows.json").write_text(json.dumps(told))


def loop(make: Epochs, epochs: int, begun: float) -> dict[str, float]:
    """Measure all epochs; in the last one, each step sleeps."""
    waits: list[float] = []
    rows, seconds, first = 0, 0.0, 0.0
    for epoch in range(epochs):
        started = before = time.perf_counter()
        for batch in make(epoch):
            came = time.perf_counter()
            if not first:
                first = came - begun
            if epoch:
                waits.append(came - before)
                rows += len(batch)
            np.add.reduce(batch, axis=None)
            before = time.perf_counter()
        if epoch:
            seconds += before - started
    step = 1.2 * seconds / len(waits)
    slept, late = _with_sleeps(make(epochs), step)
    return {
        "first_s": first,
        "rows_per_s": rows / seconds,
        "wait_us": 1e6 * float(np.median(waits)),
        "wait_p99_us": 1e6 * float(np.quantile(waits, 0.99)),
        "beside_sleep_p99_us": 1e6 * float(np.quantile(slept, 0.99)),
        "idle_timer_p99_us": 1e6 * float(np.quantile(late, 0.99)),
    }


def _with_sleeps(batches: Iterator[Array], step: float) -> tuple[list[float], list[float]]:
    """Return the waits between steps that sleep, without the first ten, and by how much each sleep ended late."""
    slept, late = [], []
    before = time.perf_counter()
    for batch in batches:
        slept.append(time.perf_counter() - before)
        np.add.reduce(batch, axis=None)
        before = time.perf_counter()
        time.sleep(step)
        now = time.perf_counter()
        late.append(now - before - step)
        before = now
    return slept[10:], late


def mpidata(names: list[str], batch: int) -> Epochs:
    """Use mpidata as its users would; FileDataset counts the epochs itself."""
    import mpidata

    npy = names[0].endswith(".npy")
    columns = None if npy else {"data": [f"c{i}" for i in range(COLUMNS)]}
    data = mpidata.FileDataset(names, batch, columns=columns)
    return lambda epoch: (one["data"].numpy() for one in data)


def by_hand(names: list[str], batch: int) -> Epochs | None:
    """Hand-written loader and trainer on two ranks: the loader sends rows in random order, one batch ahead."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        send_rows(MPI.COMM_WORLD, names, batch, int(sys.argv[6]) + 1, MPI.Request.Wait)
        return None
    return receive_rows(MPI.COMM_WORLD, batch)


def receive_rows(world: Any, batch: int) -> Epochs:
    """Yield the batches that `send_rows` sends."""
    from mpi4py import MPI

    count = world.recv(source=0)

    def receive(epoch: int) -> Iterator[Array]:
        # One buffer receives while the loop uses the other.
        buffers = [np.empty((batch, COLUMNS), np.float32) for _ in range(2)]
        world.send(epoch, 0)
        numbers = range(-(-count // batch))
        request = world.Irecv(buffers[0], 0)
        for number in numbers:
            status = MPI.Status()
            request.Wait(status)
            length = status.Get_count(MPI.FLOAT) // COLUMNS
            ready = buffers[number % 2][:length]
            if number + 1 < len(numbers):
                request = world.Irecv(buffers[(number + 1) % 2], 0)
            yield ready

    return receive


def send_rows(world: Any, names: list[str], batch: int, epochs: int, wait: Callable[[Any], object]) -> None:
    """Send all rows once per epoch, when rank 1 requests them."""
    from mpi4py import MPI

    rows = _rows(names)
    world.send(len(rows), 1)
    order = np.random.default_rng(0)
    buffers = [np.empty((batch, COLUMNS), np.float32) for _ in range(2)]
    requests = [MPI.REQUEST_NULL] * 2
    for _ in range(epochs):
        permuted = order.permutation(len(rows))
        world.recv(source=1)
        for number, first in enumerate(range(0, len(rows), batch)):
            chosen = permuted[first : first + batch]
            wait(requests[number % 2])
            out = buffers[number % 2][: len(chosen)]
            np.take(rows, chosen, axis=0, out=out, mode="clip")
            requests[number % 2] = world.Issend(out, 1)
    MPI.Request.Waitall(requests)


def _rows(names: list[str]) -> Array:
    if names[0].endswith(".npy"):
        return np.concatenate([np.load(name) for name in names])
    import pyarrow.parquet

    tables = (pyarrow.parquet.read_table(name) for name in names)
    return np.concatenate([np.stack([column.to_numpy() for column in table.columns], axis=1) for table in tables])


def in_memory(names: list[str], batch: int) -> Epochs:
    """No loader: all rows are in this process, and index_select takes batches."""
    import torch

    rows = torch.from_numpy(_rows(names))

    def epochs(epoch: int) -> Iterator[Array]:
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(epoch))
        for first in range(0, len(rows), batch):
            yield torch.index_select(rows, 0, order[first : first + batch]).numpy()

    return epochs


def torch_loader(names: list[str], batch: int) -> Epochs:
    """torch's DataLoader with one worker, over a TensorDataset with a DistributedSampler."""
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    rows = TensorDataset(torch.from_numpy(_rows(names)))
    sampler = DistributedSampler(rows, num_replicas=1, rank=0)
    loader = DataLoader(rows, batch, sampler=sampler, num_workers=1, persistent_workers=True)

    def epochs(epoch: int) -> Iterator[Array]:
        sampler.set_epoch(epoch)
        return (one.numpy() for (one,) in loader)

    return epochs


def torch_batches(names: list[str], batch: int) -> Epochs:
    """torch's DataLoader with one worker, over a dataset that returns a whole batch at once."""
    import torch
    from torch.utils.data import DataLoader, DistributedSampler

    rows = torch.from_numpy(_rows(names))
    sampler = DistributedSampler(rows, num_replicas=1, rank=0)  # type: ignore[arg-type]
    loader = DataLoader(
        _Rows(rows), batch, sampler=sampler, num_workers=1, persistent_workers=True, collate_fn=lambda one: one
    )

    def epochs(epoch: int) -> Iterator[Array]:
        sampler.set_epoch(epoch)
        return (one.numpy() for one in loader)

    return epochs


class _Rows:
    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indices: list[int]) -> Any:
        return self.rows[indices]


def ray_data(names: list[str], batch: int) -> Epochs:
    """Ray Data: read_parquet, random_shuffle, iter_batches."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    data = ray.data.read_parquet(names)

    def epochs(epoch: int) -> Iterator[Array]:
        for one in data.random_shuffle(seed=epoch).iter_batches(batch_size=batch, batch_format="numpy"):
            yield np.stack([one[f"c{i}"] for i in range(COLUMNS)], axis=1)

    return epochs


KINDS: dict[str, Callable[[list[str], int], Epochs | None]] = {
    "mpidata": mpidata,
    "by_hand": by_hand,
    "in_memory": in_memory,
    "torch_loader": torch_loader,
    "torch_batches": torch_batches,
    "ray_data": ray_data,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
