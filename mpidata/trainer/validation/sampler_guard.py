"""Samples that are already divided among the trainers, so that samplers must not divide them again."""

from __future__ import annotations

from collections.abc import Sized
from multiprocessing.context import get_spawning_popen
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.utils.data import Dataset, DistributedSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.callers import callers, refuses_empty
from mpidata.trainer.frameworks.preparation import teach_accelerate

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["Dealt", "no_workers"]

_SHARD = "BatchSamplerShard"
_DEEP = 4  # samplers within samplers


def no_workers(what: str) -> str:
    """Return why worker processes cannot be used with validation samples."""
    return (
        f"{what} does not work with validation samples: a DataLoader's workers are other processes, and the samples "
        "are in this one's memory. Use num_workers=0."
    )


class Dealt(Dataset[dict[str, torch.Tensor]], Sized):
    """A map-style dataset of one trainer's share of the samples.

    Attributes
    ----------
    trainer : Trainer
        The trainer that has the share.

    Notes
    -----
    A DistributedSampler that asks for the length gets the whole share, because each sample is on only one trainer.
    """

    trainer: Trainer

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled, as a DataLoader does for its workers if it does not fork."""
        if get_spawning_popen():
            raise StreamError(no_workers("num_workers > 0"))
        raise StreamError(
            "stream.validation() cannot be copied or pickled: its samples are in this trainer's memory. Use the same "
            "object, or list(stream.validation()), whose samples are independent copies."
        )

    def count(self) -> int:
        """Return the number of samples."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Update the share before a pass."""

    def __len__(self) -> int:
        """Return the number of samples in this trainer's share."""
        self.refresh()
        teach_accelerate()
        for caller in callers():
            if isinstance(caller, DistributedSampler):
                caller.num_replicas, caller.rank = 1, 0
            elif type(caller).__name__ == _SHARD and self.trainer.plan.trainers > 1:
                raise _dealt_again(
                    "accelerator.prepare", "Import accelerate, or transformers, before stream.validation() is called"
                )
        count, plan = self.count(), self.trainer.plan
        if not count and plan.trainers > 1 and plan.validation and refuses_empty():
            raise StreamError(
                "This trainer's share of the validation samples is empty, which Lightning refuses. Use "
                "stream.validation(even=True), or more validation samples (`validation: count:`)."
            )
        return count

    def refuse_dealing(self) -> None:
        """Raise StreamError if the DataLoader that requests a sample divides a dataset around this one.

        Of a Subset, for example, a sampler sees only the length.
        """
        if self.trainer.plan.trainers * self.trainer.replica.size == 1:
            return
        loader = next((caller for caller in callers() if isinstance(caller, _BaseDataLoaderIter)), None)
        sampler: Any = getattr(loader, "_index_sampler", None)
        for _ in range(_DEEP):
            if isinstance(sampler, DistributedSampler) and sampler.num_replicas > 1:
                name = type(sampler).__name__
                raise _dealt_again(f"A {name}", "Leave it out (Lightning: Trainer(use_distributed_sampler=False))")
            if type(sampler).__name__ == _SHARD and sampler.num_processes > 1:
                raise _dealt_again("accelerator.prepare", "Prepare a DataLoader around stream.validation() itself")
            sampler = getattr(sampler, "batch_sampler", None) or getattr(sampler, "sampler", None)


def _dealt_again(what: str, advice: str) -> StreamError:
    return StreamError(
        f"{what} would divide stream.validation() a second time, and some of the samples would be on no trainer. "
        f"{advice}, or use stream.validation(share=False)."
    )
