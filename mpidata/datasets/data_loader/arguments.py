"""Arguments of a DataLoader that cannot be, or have no effect."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.utils.data import IterableDataset

from mpidata.errors import StreamError

__all__ = ["refuse", "say_without_effect"]


def refuse(
    dataset: Any, batch_size: int | None, prefetch_factor: int | None, share: bool, sampled: bool, generator: Any
) -> None:
    """Raise StreamError if these arguments cannot be; `sampled`: there is a sampler of any kind."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise StreamError(
            f"generator={generator!r:.100} is no torch.Generator. Give torch.Generator().manual_seed(3), say, or leave "
            "it out."
        )
    if isinstance(dataset, IterableDataset):
        raise StreamError(
            f"mpidata.DataLoader needs a dataset with indices, and {type(dataset).__name__} is an IterableDataset: "
            "nobody could say what of it is lost with a loader. Give it __getitem__ and __len__."
        )
    if isinstance(dataset, str) and not all(dataset.partition(":")):
        raise StreamError(f'dataset={dataset!r} names no function. Write "module:function", or give a dataset.')
    if prefetch_factor is not None and prefetch_factor < 1:
        raise StreamError(f"prefetch_factor={prefetch_factor} asks the loaders for nothing. Give a number from 1.")
    if share and sampled:
        raise StreamError(
            "share=True deals the indices out itself, so sampler and batch_sampler cannot be given. Leave them out, or "
            "leave share=True out, and each trainer gets what its sampler says."
        )
    if share and batch_size is None:
        raise StreamError("share=True needs batch_size: it deals out batches. Give batch_size=1 for single samples.")


def say_without_effect(num_workers: int, multiprocessing_context: Any, persistent_workers: bool) -> None:
    """Warn of arguments for worker processes, if there are any."""
    given = [f"num_workers={num_workers}"] if num_workers else []
    given += [f"multiprocessing_context={multiprocessing_context!r}"] if multiprocessing_context is not None else []
    given += ["persistent_workers=True"] if persistent_workers else []
    if given:
        warnings.warn(
            f"{', '.join(given)}: no effect on mpidata.DataLoader, whose workers are the job's loaders: "
            "`loaders: {ranks: ...}` in the job file.",
            stacklevel=3,
        )
