"""ADIOS2 with its engine SST: one ADIOS step for each mesh, with the mesh's own shapes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from benchmarks.contender import BATCH, Cell, run_role
from benchmarks.contenders.adios_sst import open_stream
from benchmarks.gate import Gate
from benchmarks.mesh_sizes import nodes


def produce(cell: Cell, gate: Gate) -> None:
    from benchmarks.consume import stamp

    bindings, adios, io = open_stream(cell)
    sizes = nodes(cell.sample_bytes)
    xy, u = np.ones((max(sizes), 2), np.float32), np.ones(max(sizes), np.float32)
    variables = [(array, io.DefineVariable(name, array, array.shape, [0] * array.ndim, array.shape, False))
                 for name, array in (("xy", xy), ("u", u))]  # fmt: skip
    engine = io.Open(str(cell.folder / "stream"), bindings.Mode.Write)
    for number in gate.steps(cell.warm):
        count = sizes[number % len(sizes)]
        stamp(u[:count], number)
        engine.BeginStep()
        for array, variable in variables:
            shape = [count, *array.shape[1:]]
            variable.SetShape(shape)
            variable.SetSelection([[0] * array.ndim, shape])
            engine.Put(variable, array[:count], bindings.Mode.Deferred)
        engine.EndStep()
    os._exit(0)  # closing would wait for a reader that has exited


def consume(cell: Cell, gate: Gate) -> None:
    import torch

    from benchmarks.consume import consume as take

    bindings, adios, io = open_stream(cell)
    engine = io.Open(str(cell.folder / "stream"), bindings.Mode.Read)
    most = BATCH * max(nodes(cell.sample_bytes))
    memory = [(np.zeros((most, 2), np.float32), np.zeros(most, np.float32)) for _ in range(2)]  # used in turn

    def ends() -> Iterator[torch.Tensor]:
        number = 0
        while True:
            xy, u = memory[number % 2]
            number += 1
            offsets = np.zeros(BATCH + 1, np.int64)
            for i in range(BATCH):
                if engine.BeginStep(bindings.StepMode.Read, cell.limit_s) != bindings.StepStatus.OK:
                    return
                variable = io.InquireVariable("u")
                first, count = offsets[i], variable.Shape()[0]
                offsets[i + 1] = first + count
                for name, array in (("xy", xy), ("u", u)):
                    variable = io.InquireVariable(name)
                    variable.SetSelection([[0] * array.ndim, variable.Shape()])
                    engine.Get(variable, array[first : first + count], bindings.Mode.Deferred)
                engine.EndStep()
            yield torch.from_numpy(np.stack([u[offsets[:-1]], u[offsets[1:] - 1]], axis=1))

    take(ends(), cell, gate)
    os._exit(0)


if __name__ == "__main__":
    run_role({"produce": produce, "consume": consume})
