"""ADIOS2 with its engine SST: each producer has its own stream, with one ADIOS step per sample."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.consume import BatchRows
from benchmarks.contender import Cell
from benchmarks.many_to_one.board import BATCH, Board, produce
from benchmarks.many_to_one.loop import consume
from benchmarks.many_to_one.roles import run_role


def _declare(cell: Cell, producer: int) -> tuple[Any, Any, Any, str]:
    os.environ["ADIOS2_IP"] = "127.0.0.1"
    from adios2 import bindings

    adios = bindings.ADIOS()  # must outlive the objects that it made
    io = adios.DeclareIO(f"stream-{producer}")
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
    return bindings, adios, io, str(cell.folder / f"stream-{producer}")


def put_steps(cell: Cell, board: Board, producer: int, producers: int) -> None:
    """Put each sample as a step."""
    bindings, adios, io, name = _declare(cell, producer)
    shape = [cell.elements]
    variable = io.DefineVariable("u", np.ones(cell.elements, np.float32), shape, [0], shape, True)
    engine = io.Open(name, bindings.Mode.Write)

    def put(number: int, values: Any) -> None:
        engine.BeginStep()
        engine.Put(variable, values, bindings.Mode.Deferred)
        engine.EndStep()

    produce(cell, board, producer, producers, put)
    os._exit(0)  # closing would wait for a reader that has exited


def take_steps(cell: Cell, board: Board, producers: int) -> None:
    """Take a step from each stream in turn; all producers make the same number."""
    streams = []
    for producer in range(producers):
        bindings, adios, io, name = _declare(cell, producer)
        streams.append((adios, io, io.Open(name, bindings.Mode.Read)))
    memory = BatchRows(cell.elements, BATCH)

    def places() -> Iterator[Any]:
        while True:
            yield from streams

    def batches() -> Iterator[Any]:
        each = places()
        while True:
            rows = memory.take()
            for row in rows:
                _, io, engine = next(each)
                if engine.BeginStep(bindings.StepMode.Read, cell.limit_s) != bindings.StepStatus.OK:
                    return
                engine.Get(io.InquireVariable("u"), row, bindings.Mode.Deferred)
                engine.EndStep()
            yield rows

    consume(batches(), cell, board, producers)
    os._exit(0)


if __name__ == "__main__":
    run_role(put_steps, take_steps)
