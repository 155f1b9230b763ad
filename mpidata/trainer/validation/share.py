"""A trainer's share of the validation samples, as an ordinary map-style dataset."""

from __future__ import annotations

import ctypes
import dataclasses
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import get_worker_info

from mpidata.errors import StreamError
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.packing import join_fields, number_tensors, refuse_stacking
from mpidata.run.plan import Field
from mpidata.tensors import number_tensor, part_weights
from mpidata.trainer.constants import of_validation
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.replica.mate import MateTrainer
from mpidata.trainer.trainer import SLICE_S, Trainer
from mpidata.trainer.validation.sampler_guard import Dealt, no_workers

__all__ = ["ValidationDataset"]


@dataclasses.dataclass(frozen=True)
class _Step:
    """The index of a step among those of the validation samples, its numbers, and its values other than fields."""

    index: int
    numbers: npt.NDArray[np.int64]
    parameters: npt.NDArray[np.float64]
    time: float
    step: int
    simulation: int


class ValidationDataset(Dealt):
    """Share of the validation samples that this trainer holds; they are never trained on.

    ``MPIStreamDataset.validation`` returns it. The share may be empty, and its size may differ between trainers.

    Notes
    -----
    Each sample is a dict of tensors: one for each field, ``[*shape]`` in the declared dtype; ``parameters``, ``[n]``
    float64; ``time`` (float64), ``step`` and ``simulation`` (int64) without dimensions. Samples are ordered by
    (simulation, step) and copied at each access, so they may be changed. With windows of W steps fields are
    ``[W, *shape]``, and ``time`` and ``step`` are ``[W]``. A field whose shape contains a name has the length of the
    sample, and the name is also a tensor: int64 without dimensions, or ``[W]`` if the steps are joined along it. An
    optional field has ``<name>_given``, bool, of the same shape. Fields with ``per: simulation`` are views without a
    copy, in their own shape, which all samples of the simulation share, unless the stream has ``constants="batch"``.
    Use ``num_workers=0`` in a DataLoader.

    With ``trainers.elastic``, ``len`` waits until the samples of a trainer that has died have come again, and includes
    those that now belong to this trainer. They follow the existing samples, so iterations in progress continue.
    """

    def __init__(self, trainer: Trainer, count: int, *, gathers: bool = False) -> None:
        self._copied = trainer.plan.fields if gathers else trainer.plan.step_fields
        self._views = bool(trainer.plan.constants) and not gathers
        self.trainer = trainer  # keeps the memory in use
        self._window = trainer.plan.samples_window
        self._samples = self._locate(count)

    def _locate(self, count: int) -> list[tuple[_Step, ...]]:
        return [
            tuple(_locate(self.trainer, first + i) for i in range(self._window))
            for first in range(0, count * self._window, self._window)
        ]

    @classmethod
    def wait(cls, trainer: Trainer, *, gathers: bool = False) -> ValidationDataset:
        """Sleep until the trainer's share is complete; raises StreamError if it never will be.

        With `gathers`, samples have copies of the constants, as of the other fields. The mates of a trainer get copies
        of its share.
        """
        made: list[ValidationDataset] = []

        def make() -> tuple[list[dict[str, torch.Tensor]], dict[int, dict[str, torch.Tensor]]]:
            made.append(cls(trainer, _wait(trainer), gathers=gathers))
            return (made[0].copies(), made[0].constants()) if trainer.replica.size > 1 else ([], {})

        samples, constants_of = trainer.alike("validation samples", make)
        return made[0] if made else _CopiedShare(trainer, samples, constants_of)

    def refresh(self) -> None:
        """Sleep until the samples of dead trainers have been sent again; they follow the existing samples."""
        if self.trainer.members is None or self.trainer.closed:
            return
        if (count := _wait(self.trainer)) != self.count():
            places = {_place(steps): place for place, steps in enumerate(self._samples)}
            self._samples = sorted(self._locate(count), key=lambda steps: places.get(_place(steps), count))

    def count(self) -> int:
        """Count the samples."""
        return len(self._samples)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a copy of one sample; raises IndexError, and StreamError in a DataLoader's worker process."""
        info = get_worker_info()
        if info is not None:
            raise StreamError(no_workers(f"num_workers={info.num_workers}"))
        self.refuse_dealing()
        if not -self.count() <= (number := operator.index(index)) < self.count():
            raise IndexError(f"There is no sample {index}: this trainer holds {self.count()} of them.")
        refuse_stacking(self, [length.name for length in self.trainer.plan.lengths], "stream.fields")
        return self._at(number)

    def _at(self, number: int) -> dict[str, torch.Tensor]:
        steps = self._samples[number]
        return self._copy(steps) | (of_validation(self.trainer, steps[0].index).tensors() if self._views else {})

    def copies(self) -> list[dict[str, torch.Tensor]]:
        """Copy all samples, without what `constants` has."""
        return [self._copy(steps) for steps in self._samples]

    def constants(self) -> dict[int, dict[str, torch.Tensor]]:
        """Return views of the fields with ``per: simulation``, by simulation; empty if samples have copies of them."""
        first = {steps[0].simulation: steps[0].index for steps in reversed(self._samples)} if self._views else {}
        return {simulation: of_validation(self.trainer, index).tensors() for simulation, index in first.items()}

    def _copy(self, steps: tuple[_Step, ...]) -> dict[str, torch.Tensor]:
        plan = self.trainer.plan
        numbers = self._numbers_of(steps)
        copied = [_copy_fields(self.trainer, self._copied, step) for step in steps]
        lengths = dict(zip((length.name for length in plan.lengths), numbers, strict=False))
        tensors = copied[0] if self._window == 1 else join_fields(self._copied, copied, lengths)
        tensors |= number_tensors(plan.numbers, numbers, len(plan.lengths))
        tensors["parameters"] = torch.from_numpy(steps[0].parameters.copy())
        tensors["time"] = self._joined([number_tensor(step.time) for step in steps])
        tensors["step"] = self._joined([number_tensor(step.step) for step in steps])
        tensors["simulation"] = number_tensor(steps[0].simulation)
        return part_weights(tensors) if plan.weights else tensors

    def _numbers_of(self, steps: Sequence[_Step]) -> npt.NDArray[np.int64]:
        return steps[0].numbers if self._window == 1 else np.stack([step.numbers for step in steps], axis=-1)

    def _joined(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        return tensors[0] if self._window == 1 else torch.stack(tensors)


class _CopiedShare(ValidationDataset):
    """The share of a mate's trainer, copied."""

    def __init__(
        self,
        trainer: Trainer,
        samples: list[dict[str, torch.Tensor]],
        constants_of: dict[int, dict[str, torch.Tensor]],
    ) -> None:
        self.trainer, self._held, self._constants = trainer, samples, constants_of
        assert isinstance(trainer, MateTrainer)
        trainer.constants.hold(constants_of)

    def refresh(self) -> None:
        """Do nothing, because no trainer may die."""

    def count(self) -> int:
        """Count the samples."""
        return len(self._held)

    def copies(self) -> list[dict[str, torch.Tensor]]:
        """Copy all samples, without what `constants` has."""
        return [{name: tensor.clone() for name, tensor in sample.items()} for sample in self._held]

    def constants(self) -> dict[int, dict[str, torch.Tensor]]:
        """Return the fields with ``per: simulation``, by simulation."""
        return self._constants

    def _at(self, number: int) -> dict[str, torch.Tensor]:
        sample = self._held[number]
        copied = {name: tensor.clone() for name, tensor in sample.items()}
        return copied | self._constants.get(int(sample["simulation"]), {})


def _wait(trainer: Trainer) -> int:
    """Sleep until this trainer has all of its validation samples; return their number."""
    reached("validation.wait")
    count = ctypes.c_int64()
    status = constants.ERR_AGAIN
    while status in (constants.ERR_AGAIN, constants.MEET):
        if trainer.closed:
            raise StreamError("The stream is closed. Call stream.validation() before stream.close().")
        status = trainer.library.mpidata_trainer_validation(ctypes.byref(count), SLICE_S)
        if status == constants.MEET:
            trainer.meet()
        if status == constants.ERR_AGAIN and trainer.apart is not None:
            trainer.apart.look()
    if status == constants.END:
        trainer.raise_interrupt()
        raise StreamError(
            "The job was stopped before the validation samples were complete. See the run folder's summary, or the "
            "output of `mpidata try`, for the reason."
        )
    check(trainer.library, status)
    return count.value


def _place(steps: tuple[_Step, ...]) -> tuple[int, int]:
    return steps[0].simulation, steps[0].step


def _locate(trainer: Trainer, index: int) -> _Step:
    plan = trainer.plan
    numbers, parameters = np.zeros(len(plan.numbers), np.int64), np.zeros(len(plan.parameters))
    time, step, simulation = ctypes.c_double(), ctypes.c_int64(), ctypes.c_int64()
    results = [ctypes.byref(result) for result in (time, step, simulation)]
    sample = trainer.library.mpidata_trainer_validation_sample
    check(trainer.library, sample(index, numbers.ctypes.data, parameters.ctypes.data, *results))
    return _Step(index, numbers, parameters, time.value, step.value, simulation.value)


def _copy_fields(trainer: Trainer, fields: Sequence[Field], step: _Step) -> dict[str, torch.Tensor]:
    lengths = {length.name: int(of) for length, of in zip(trainer.plan.lengths, step.numbers, strict=False)}
    tensors = {
        field.name: torch.empty(field.extents(lengths), dtype=getattr(torch, field.dtype), device="cpu")
        for field in fields
    }
    at = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    places = (ctypes.c_void_p * len(trainer.plan.fields))(*(at.get(field.name) for field in trainer.plan.fields))
    check(trainer.library, trainer.library.mpidata_trainer_validation_copy(step.index, places))
    return tensors
