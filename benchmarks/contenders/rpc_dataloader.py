"""RPCDataloader: its worker makes the samples that the training process requests, collated into batches."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contender import BATCH, Cell, Peer, run_role
from benchmarks.gate import Gate

if TYPE_CHECKING:
    import torch

_AHEAD = 2
CONTENDERS = [
    Peer("RPCDataloader", f"one worker, {_AHEAD} batches ahead", "rpc_dataloader", "rpcdataloader", "RPCDataloader")
]
_ENDLESS = 1 << 40


class Samples:
    """The dataset on the worker: a sample is available when requested.

    It does not wait at the gate: the worker takes requests in any order, so a waiting one could block an earlier one.
    """

    def __init__(self, folder: str) -> None:
        import torch

        cell = Cell.read(Path(folder))
        self._gate = Gate(cell.folder, cell.limit_s)
        self._values = torch.ones(cell.elements)

    def __len__(self) -> int:
        return _ENDLESS

    def __getitem__(self, number: int) -> torch.Tensor:
        if self._gate.stopped:
            return self._values[:2]
        values = self._values.clone()
        values[0] = values[-1] = number
        return values


def produce(cell: Cell, gate: Gate) -> None:
    import threading

    import rpcdataloader

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    worker = threading.Thread(
        target=rpcdataloader.run_worker, args=("127.0.0.1", port), kwargs={"parallel": 1}, daemon=True
    )
    worker.start()
    (cell.folder / "new").write_text(str(port))
    (cell.folder / "new").rename(cell.folder / "port")
    gate.wait_until(lambda: gate.stopped)
    time.sleep(0.5)
    os._exit(0)  # threads of the worker are still busy


def consume(cell: Cell, gate: Gate) -> None:
    import rpcdataloader

    from benchmarks.consume import consume as take

    def port() -> str:
        path = cell.folder / "port"
        return path.read_text() if path.exists() else ""

    gate.wait_until(port)
    # Imported by its name in the package, so that the worker finds it.
    from benchmarks.contenders.rpc_dataloader import Samples as dataset

    remote = rpcdataloader.RPCDataset([f"127.0.0.1:{port()}"], dataset, str(cell.folder))
    loader = rpcdataloader.RPCDataloader(remote, batch_size=BATCH, sampler=range(_ENDLESS), prefetch_factor=_AHEAD)

    def batches() -> Iterator[torch.Tensor]:
        yield from loader

    take(batches(), cell, gate, ahead=_AHEAD)
    os._exit(0)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
