"""Shares of the validation samples under accelerate, and under transformers, which uses it."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, SequentialSampler

from mpidata.errors import StreamError
from mpidata.trainer.frameworks.preparation import Batches, Joined, kept
from mpidata.trainer.validation.all_samples import WholeValidation
from mpidata.trainer.validation.exchange import all_counts
from mpidata.trainer.validation.sampler_guard import Dealt
from mpidata.trainer.validation.share import ValidationDataset

__all__ = ["in_step"]


def in_step(loader: Any, parts: int) -> Any:
    """Divide validation samples into batches that accelerate can join: same number and sizes on all trainers."""
    share: Dealt = loader.dataset
    if share.trainer.plan.trainers == 1:
        return None
    if loader.batch_size is None or not isinstance(loader.sampler, SequentialSampler):
        raise StreamError(
            "accelerator.prepare(DataLoader(stream.validation())) needs a batch_size, without shuffle and sampler. "
            "Leave these out, or use stream.validation(share=False)."
        )
    trainer = share.trainer
    counts = trainer.alike("counts", lambda: all_counts(trainer.communicator, share.count()))
    size, total = loader.batch_size // parts or 1, sum(counts)
    if len(set(counts)) == 1:
        batches = Batches(counts[0], size, 0, 1, drop_last=loader.drop_last)
        dataset = Joined(share, total, filled_up_from=0)
    else:
        assert isinstance(share, ValidationDataset)
        batches = Batches(total, size, trainer.replica.number, len(counts), drop_last=loader.drop_last)
        dataset = Joined(WholeValidation.collect(share), total, batches.real_in_last_step)
    return DataLoader(dataset, batch_sampler=batches, **kept(loader))
