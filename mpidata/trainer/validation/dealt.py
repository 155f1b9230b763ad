"""Samples that are dealt out to the trainers already, which samplers must not deal out again."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING

import torch
from torch.utils.data import Dataset, DistributedSampler

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.callers import callers
from mpidata.trainer.frameworks.prepared import teach_accelerate

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["Dealt"]

_SHARD = "BatchSamplerShard"


class Dealt(Dataset[dict[str, torch.Tensor]], Sized):
    """A map-style dataset of one trainer's share of the samples.

    Attributes
    ----------
    trainer : Trainer
        Whose share it is.

    Notes
    -----
    A DistributedSampler that asks for the length gets all of the share, as each sample is on one trainer only.
    """

    trainer: Trainer

    def count(self) -> int:
        """Count the samples."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Count the samples in this trainer's share."""
        teach_accelerate()
        for caller in callers(1):
            if isinstance(caller, DistributedSampler):
                caller.num_replicas, caller.rank = 1, 0
            elif type(caller).__name__ == _SHARD and self.trainer.plan.trainers > 1:
                raise StreamError(
                    "accelerator.prepare would deal out stream.validation() a second time, and part of the samples "
                    "would be seen by no trainer. Import accelerate, or transformers, before stream.validation() is "
                    "called, or use stream.validation(share=False)."
                )
        return self.count()
