"""Shares of the validation samples that have the same length on all trainers."""

from __future__ import annotations

import torch

from mpidata.errors import StreamError
from mpidata.packing import refuse_stacking
from mpidata.tensors import number_tensor
from mpidata.trainer.validation.all_samples import WholeValidation
from mpidata.trainer.validation.exchange import all_counts
from mpidata.trainer.validation.sampler_guard import Dealt
from mpidata.trainer.validation.share import ValidationDataset

__all__ = ["EvenValidation"]

_MASK = "mask"


class EvenValidation(Dealt):
    """A trainer's share of the validation samples, padded to the longest share.

    ``MPIStreamDataset.validation(even=True)`` returns it.

    Notes
    -----
    Samples are those of ValidationDataset, and have ``mask``, bool without dimensions: false for padding, which repeats
    samples of the share (if it is empty, the first sample of all).
    """

    def __init__(self, share: ValidationDataset, length: int, filler: dict[str, torch.Tensor] | None) -> None:
        self.trainer = share.trainer
        self._share, self._length, self._filler = share, length, filler

    @classmethod
    def pad(cls, share: ValidationDataset) -> EvenValidation:
        """Pad a share to the longest one; collective over the trainers."""
        trainer = share.trainer
        if any(field.name == _MASK for field in trainer.plan.fields):
            raise StreamError(
                "stream.validation(even=True) adds 'mask' to each sample, but the job has a field 'mask'. Give the "
                "field another name, or use stream.validation(share=False)."
            )
        counts = trainer.alike("counts", lambda: all_counts(trainer.communicator, share.count()))
        filler = None
        if min(counts) == 0 < max(counts):
            filler = WholeValidation.collect(share)[0]
        return cls(share, max(counts), filler)

    def count(self) -> int:
        """Return the number of samples, including padding."""
        return self._length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return a copy of one sample; raises IndexError, and StreamError in a DataLoader's worker process."""
        refuse_stacking(self, [length.name for length in self.trainer.plan.lengths], "stream.fields")
        place, own = range(self._length)[index], self._share.count()
        sample = self._share[place % own] if own else {name: of.clone() for name, of in (self._filler or {}).items()}
        return sample | {_MASK: number_tensor(place < own)}
