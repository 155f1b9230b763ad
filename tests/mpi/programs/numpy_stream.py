"""The stream as NumPy arrays, for trainers whose test does not need tensors: importing torch takes seconds."""

import ctypes
from collections.abc import Iterator

import numpy as np

from mpidata.trainer.join import join
from mpidata.trainer.shares.grouping import Grouping


def stream(batch_size: int | None = None) -> Iterator[dict[str, np.ndarray]]:
    """Join the job; return its batches, or single samples, with the names and shapes of MPIStreamDataset."""
    trainer = join()
    trainer.start(Grouping(batch_size))
    trainer.begin_pass()
    return _batches(batch_size)


def _batches(batch_size: int | None) -> Iterator[dict[str, np.ndarray]]:
    trainer, lead = join(), () if batch_size is None else (batch_size,)
    count, window = len(trainer.plan.fields), trainer.plan.samples_window
    steps = lead if window == 1 else (*lead, window)
    layout = {"parameters": ((*lead, len(trainer.plan.parameters)), "float64")}
    layout |= {"time": (steps, "float64"), "step": (steps, "int64"), "simulation": (lead, "int64")}
    numbers = np.zeros((len(trainer.plan.numbers), *steps), np.int64)
    while True:
        if trainer.plan.numbers and not trainer.draw_numbers(numbers.ctypes.data):
            return
        totals = {length.name: int(of.sum()) for length, of in zip(trainer.plan.lengths, numbers, strict=False)}
        shapes = {f.name: f.extents(totals) if f.length else steps + f.extents() for f in trainer.plan.fields}
        kinds = {f.name: (shapes[f.name], f.dtype) for f in trainer.plan.fields} | layout
        batch = {name: np.empty(*kind) for name, kind in kinds.items()}
        addresses = [array.ctypes.data for array in batch.values()]
        if not trainer.draw((ctypes.c_void_p * count)(*addresses[:count]), addresses[count:]):
            return
        yield batch | dict(zip(trainer.plan.numbers, numbers.copy(), strict=True))
