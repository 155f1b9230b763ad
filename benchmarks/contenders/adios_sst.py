"""ADIOS2 with its engine SST: one ADIOS step for each time step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from benchmarks.contender import BATCH, Cell, Peer, run_role
from benchmarks.gate import Gate

CONTENDERS = [Peer("ADIOS2 SST", "one step for each sample, read into the batch", "adios_sst", "adios2", "ADIOS2 SST")]


def open_stream(cell: Cell) -> tuple[Any, Any, Any]:
    os.environ["ADIOS2_IP"] = "127.0.0.1"
    from adios2 import bindings

    adios = bindings.ADIOS()  # must outlive the objects that it made
    io = adios.DeclareIO("stream")
    io.SetEngine("SST")
    io.SetParameters(
        {
            "RendezvousReaderCount": "1",
            "QueueLimit": str(cell.queue),
            "QueueFullPolicy": "Block",
            "NetworkInterface": "lo",
            "OpenTimeoutSecs": str(int(cell.limit_s)),
        }
    )
    return bindings, adios, io


def produce(cell: Cell, gate: Gate) -> None:
    import numpy as np

    from benchmarks.consume import stamp

    bindings, adios, io = open_stream(cell)
    values = np.ones(cell.elements, np.float32)
    shape = [cell.elements]
    variable = io.DefineVariable("u", values, shape, [0], shape, True)
    engine = io.Open(str(cell.folder / "stream"), bindings.Mode.Write)
    for number in gate.steps(cell.warm):
        stamp(values, number)
        engine.BeginStep()
        engine.Put(variable, values, bindings.Mode.Deferred)
        engine.EndStep()
    os._exit(0)  # closing would wait for a reader that has exited


def consume(cell: Cell, gate: Gate) -> None:
    import torch

    from benchmarks.consume import BatchRows
    from benchmarks.consume import consume as take

    bindings, adios, io = open_stream(cell)
    engine = io.Open(str(cell.folder / "stream"), bindings.Mode.Read)

    def batches() -> Iterator[torch.Tensor]:
        memory = BatchRows(cell.elements)
        while True:
            rows = memory.take()
            for i in range(BATCH):
                if engine.BeginStep(bindings.StepMode.Read, cell.limit_s) != bindings.StepStatus.OK:
                    return
                engine.Get(io.InquireVariable("u"), rows[i], bindings.Mode.Deferred)
                engine.EndStep()
            yield torch.from_numpy(rows)

    take(batches(), cell, gate)
    os._exit(0)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
