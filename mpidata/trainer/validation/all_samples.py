"""The validation samples of all trainers, on each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.data import Dataset

from mpidata.packing import refuse_stacking
from mpidata.trainer.local_sgd.meeting_points import come
from mpidata.trainer.validation.exchange import all_objects, objects_of_living
from mpidata.trainer.validation.share import ValidationDataset

__all__ = ["WholeValidation"]


class WholeValidation(Dataset[dict[str, torch.Tensor]]):
    """All validation samples; ``MPIStreamDataset.validation(share=False)`` returns it.

    Notes
    -----
    Samples are those of ValidationDataset, ordered by (simulation, step), the same on all trainers, and copied at each
    access. They are in the memory of this process, so worker processes of a DataLoader may read them.
    """

    def __init__(
        self, samples: list[dict[str, torch.Tensor]], constants: dict[int, dict[str, torch.Tensor]], lengths: list[str]
    ) -> None:
        self._samples, self._constants, self._lengths = samples, constants, lengths

    @classmethod
    def collect(cls, share: ValidationDataset) -> WholeValidation:
        """Collect the shares of all trainers; collective over them."""

        def collect() -> tuple[list[dict[str, torch.Tensor]], dict[int, dict[str, torch.Tensor]]]:
            samples: list[dict[str, torch.Tensor]] = []
            constants: dict[int, dict[str, torch.Tensor]] = {}
            for of_one, constants_of_one in _shares(share):
                samples += of_one
                constants |= constants_of_one
            return sorted(samples, key=_place), constants

        collected = share.trainer.alike("all validation samples", collect)
        return cls(*collected, [length.name for length in share.trainer.plan.lengths])

    def __len__(self) -> int:
        """Return the number of samples of all trainers."""
        return len(self._samples)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a copy of one sample; raises IndexError."""
        try:
            sample = self._samples[index]
        except IndexError:
            raise IndexError(f"There is no sample {index}: the trainers hold {len(self)} of them.") from None
        refuse_stacking(self, self._lengths, "stream.fields")
        copied = {name: tensor.clone() for name, tensor in sample.items()}
        return copied | self._constants.get(int(sample["simulation"]), {})


def _shares(share: ValidationDataset) -> Iterable[Any]:
    """Collect the samples of all trainers; again if one has died meanwhile and its samples were sent again."""
    trainer, found = share.trainer, None
    if trainer.members is None:
        return all_objects(trainer.communicator, [share.copies(), share.constants()])
    while found is None:
        share.refresh()
        generation = trainer.members.generation
        come(trainer.apart)
        found = objects_of_living(trainer.members, [share.copies(), share.constants()], generation)
    return found


def _place(sample: dict[str, torch.Tensor]) -> tuple[int, int]:
    return int(sample["simulation"]), int(sample["step"].flatten()[0])
