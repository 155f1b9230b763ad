"""A dataset on its way to the loaders: what a trainer packs, and a loader makes of it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import json
import pickle
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import cloudpickle
import torch
from torch.utils.data import Dataset

from mpidata.errors import StreamError, as_line

__all__ = [
    "Definition",
    "Epochs",
    "dataset_numbers",
    "default_dtype",
    "digest",
    "epoch_takers",
    "pack_definition",
    "unpack_definition",
]

Epochs: TypeAlias = "tuple[int | None, ...]"
"""What each of `epoch_takers` was told; None: nothing."""

dataset_numbers = itertools.count()
"""Numbers for this trainer's datasets, of whatever class."""

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class Definition:
    """What a loader needs to make batches.

    Attributes
    ----------
    dataset : object or str
        A map-style dataset, or the function that makes it, as "module:function".
    collate_fn : callable
        Makes a batch of samples.
    worker_init_fn : callable or None
        Called on each loader before its first batch, with the loader's number.
    batched : bool
        Whether it is asked for lists of indices, as opposed to single ones.
    dtype : torch.dtype
        torch's default where it was made.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    worker_init_fn: Callable[[int], None] | None
    batched: bool
    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)


def pack_definition(definition: Definition) -> bytes:
    """Pickle a definition, what is in ``__main__`` included; raises StreamError where that cannot be done.

    Where to import the rest from goes with it: the trainer's own ``sys.path``.
    """
    try:
        pickled: bytes = cloudpickle.dumps(definition, protocol=5)
    except Exception as error:  # a dataset may raise anything here
        raise StreamError(
            f"The dataset ({type(definition.dataset).__name__}) cannot be sent to the loaders, as it, its collate_fn "
            f"or worker_init_fn cannot be pickled: {type(error).__name__}: {as_line(error)}. Let it open files and "
            'connections when it is first asked for a sample, or name a function that makes it: "module:function".'
        ) from error
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)]).encode()
    return _HEAD.pack(len(path)) + path + pickled


def digest(payload: memoryview) -> bytes:
    """Tell definitions apart."""
    return hashlib.blake2b(payload, digest_size=32).digest()


def unpack_definition(payload: memoryview) -> Definition:
    """Make the dataset of what `pack_definition` gave; whatever the dataset raises."""
    (length,) = _HEAD.unpack_from(payload)
    begin = _HEAD.size + length
    for entry in json.loads(bytes(payload[_HEAD.size : begin])):
        if entry not in sys.path:
            sys.path.append(entry)
    definition: Definition = pickle.loads(payload[begin:])
    if not isinstance(definition.dataset, str):
        return definition
    module, _, function = definition.dataset.partition(":")
    with default_dtype(definition.dtype):
        return replace(definition, dataset=getattr(importlib.import_module(module), function)())


def default_dtype(dtype: torch.dtype) -> contextlib.AbstractContextManager[None]:
    """Have torch's default dtype be this one."""
    before = torch.get_default_dtype()
    return contextlib.nullcontext() if dtype == before else _changed_dtype(dtype, before)


@contextlib.contextmanager
def _changed_dtype(dtype: torch.dtype, before: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def epoch_takers(dataset: Any) -> list[Any]:
    """List a dataset and those that it is made of, as Subset and ConcatDataset are, as far as they have `set_epoch`."""
    parts = [dataset]
    for part in parts:
        within = [getattr(part, "dataset", None), *(getattr(part, "datasets", None) or ())]
        parts += [thing for thing in within if isinstance(thing, Dataset) and not any(thing is p for p in parts)]
    return [part for part in parts if callable(getattr(part, "set_epoch", None))]
