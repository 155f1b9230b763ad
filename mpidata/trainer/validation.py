"""The validation samples of a trainer, as an ordinary map-style dataset."""

from __future__ import annotations

import ctypes
import dataclasses
import math

import torch
from torch.utils.data import Dataset, get_worker_info

from mpidata.errors import StreamError
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.trainer.trainer import SLICE_S, Trainer

__all__ = ["ValidationDataset"]


@dataclasses.dataclass(frozen=True)
class _Step:
    """Where a step lies in the library's memory, and its numbers."""

    fields: tuple[int, ...]
    parameters: int
    time: float
    step: int
    simulation: int


class ValidationDataset(Dataset[dict[str, torch.Tensor]]):
    """Share of the samples of the validation simulations that this trainer holds; they are never trained on.

    ``MPIStreamDataset.validation`` makes it. The share may be empty, and may differ in size by trainer.

    Notes
    -----
    Each sample is a dict of tensors: one per field, ``[*shape]`` in the declared dtype; ``parameters``, ``[n]``
    float64; ``time`` (float64), ``step`` and ``simulation`` (int64) without dimensions. Samples are ordered by
    (simulation, step) and copied at each access, so they may be changed. With windows of W steps fields are
    ``[W, *shape]``, ``time`` and ``step`` ``[W]``. Use ``num_workers=0`` in a DataLoader.
    """

    def __init__(self, trainer: Trainer, count: int) -> None:
        plan = trainer.plan
        self._layout = [(f.name, f.shape, getattr(torch, f.dtype)) for f in plan.fields]
        self._n_parameters = len(plan.parameters)
        self._trainer = trainer  # keeps the memory in use
        self._window = plan.samples_window
        self._samples = [
            tuple(_locate(trainer, first + i) for i in range(self._window))
            for first in range(0, count * self._window, self._window)
        ]

    @classmethod
    def wait(cls, trainer: Trainer) -> ValidationDataset:
        """Wait, asleep, until the trainer's share is complete; raises StreamError when it never will be."""
        count = ctypes.c_int64()
        status = constants.ERR_AGAIN
        while status == constants.ERR_AGAIN:
            if trainer.closed:
                raise StreamError("The stream is closed. Call stream.validation() before stream.close().")
            status = trainer.library.mpidata_trainer_validation(ctypes.byref(count), SLICE_S)
        if status == constants.END:
            raise StreamError(
                "The job was stopped before the validation samples were complete. See the run folder's summary for the "
                "reason."
            )
        check(trainer.library, status)
        return cls(trainer, count.value)

    def __len__(self) -> int:
        """Count the samples in this trainer's share."""
        return len(self._samples)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Copy one sample; raises IndexError, and StreamError in a DataLoader's worker process."""
        info = get_worker_info()
        if info is not None:
            raise StreamError(
                f"num_workers={info.num_workers} does not work with validation samples: a DataLoader's workers are "
                "forked processes, and MPI does not survive a fork. Use num_workers=0: the samples are in memory."
            )
        try:
            steps = self._samples[index]
        except IndexError:
            raise IndexError(f"There is no sample {index}: this trainer holds {len(self)} of them.") from None
        tensors = {
            name: self._joined([_copy(step.fields[i], shape, dtype) for step in steps])
            for i, (name, shape, dtype) in enumerate(self._layout)
        }
        tensors["parameters"] = _copy(steps[0].parameters, (self._n_parameters,), torch.float64)
        tensors["time"] = self._joined([torch.tensor(step.time, dtype=torch.float64) for step in steps])
        tensors["step"] = self._joined([torch.tensor(step.step) for step in steps])
        tensors["simulation"] = torch.tensor(steps[0].simulation)
        return tensors

    def _joined(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        return tensors[0] if self._window == 1 else torch.stack(tensors)


def _locate(trainer: Trainer, index: int) -> _Step:
    fields = (ctypes.c_void_p * len(trainer.plan.fields))()
    parameters, time = ctypes.c_void_p(), ctypes.c_double()
    step, simulation = ctypes.c_int64(), ctypes.c_int64()
    results = [ctypes.byref(result) for result in (parameters, time, step, simulation)]
    check(trainer.library, trainer.library.mpidata_trainer_validation_sample(index, fields, *results))
    addresses = tuple(address or 0 for address in fields)
    return _Step(addresses, parameters.value or 0, time.value, step.value, simulation.value)


def _copy(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    tensor = torch.empty(shape, dtype=dtype)
    ctypes.memmove(tensor.data_ptr(), address, math.prod(shape) * dtype.itemsize)
    return tensor
