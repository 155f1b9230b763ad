"""Checks for arguments of a DataLoader that are invalid or have no effect."""

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
    """Raise StreamError if an argument is invalid; `sampled`: a sampler of any kind is given."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise StreamError(
            f"generator={generator!r:.100} is not a torch.Generator. Give one, for example "
            "torch.Generator().manual_seed(3), or omit the argument."
        )
    if isinstance(dataset, IterableDataset):
        raise StreamError(
            f"mpidata.DataLoader needs a map-style dataset, but {type(dataset).__name__} is an IterableDataset: if a "
            "loader died, it would be unknown which samples are lost. Give it __getitem__ and __len__."
        )
    if isinstance(dataset, str) and not all(dataset.partition(":")):
        raise StreamError(f'dataset={dataset!r} does not name a function. Write "module:function", or give a dataset.')
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise StreamError(f"batch_size={batch_size!r:.100} is not a positive integer. Give 1 or more, or None.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise StreamError(f"prefetch_factor={prefetch_factor} requests no batches. Give a number of at least 1.")
    if share and sampled:
        raise StreamError(
            "share=True divides the indices itself, so sampler and batch_sampler cannot be given. Omit them, or omit "
            "share=True: then each trainer gets the indices of its own sampler."
        )
    if share and batch_size is None:
        raise StreamError("share=True needs batch_size: it divides batches. Give batch_size=1 for single samples.")


def say_without_effect(num_workers: int, multiprocessing_context: Any, persistent_workers: bool) -> None:
    """Warn about arguments for worker processes, if any are given."""
    given = [f"num_workers={num_workers}"] if num_workers else []
    given += [f"multiprocessing_context={multiprocessing_context!r}"] if multiprocessing_context is not None else []
    given += ["persistent_workers=True"] if persistent_workers else []
    if given:
        warnings.warn(
            f"{', '.join(given)}: no effect on mpidata.DataLoader, whose workers are the job's loaders. Set their "
            "number with `loaders: {ranks: ...}` in the job file.",
            stacklevel=3,
        )
