"""The definition of a dataset, which a trainer packs and a loader unpacks."""

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
"""The epoch that was set for each of `epoch_takers`; None: none."""

dataset_numbers = itertools.count()
"""Numbers for this trainer's datasets of any class."""

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class Definition:
    """Everything that a loader needs to make batches.

    Attributes
    ----------
    dataset : object or str
        A map-style dataset, or the function that creates it, as "module:function".
    collate_fn : callable
        Makes a batch of samples.
    worker_init_fn : callable or None
        Called on each loader before its first batch, with the loader's number.
    batched : bool
        Whether requests have lists of indices instead of single ones.
    dtype : torch.dtype
        torch's default dtype in the trainer.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    worker_init_fn: Callable[[int], None] | None
    batched: bool
    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)


def pack_definition(definition: Definition) -> bytes:
    """Pickle a definition, including objects of ``__main__``; raises StreamError if that is impossible.

    The trainer's ``sys.path`` is sent with it, to import the rest from.
    """
    try:
        pickled: bytes = cloudpickle.dumps(definition, protocol=5)
    except Exception as error:  # a dataset may raise anything here
        raise StreamError(
            f"The dataset ({type(definition.dataset).__name__}) cannot be sent to the loaders: it, its collate_fn or "
            f"worker_init_fn cannot be pickled: {type(error).__name__}: {as_line(error)}. Open files and connections "
            'when the first sample is read, or give a function that creates the dataset: "module:function".'
        ) from error
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)]).encode()
    return _HEAD.pack(len(path)) + path + pickled


def digest(payload: memoryview) -> bytes:
    """Return a hash of a definition."""
    return hashlib.blake2b(payload, digest_size=32).digest()


def unpack_definition(payload: memoryview) -> Definition:
    """Return the definition that `pack_definition` packed, with its dataset; raises what creating that raises."""
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
    """Use this as torch's default dtype within the context."""
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
    """List those with `set_epoch` of a dataset and the datasets within it, as in Subset and ConcatDataset."""
    parts = [dataset]
    for part in parts:
        within = [getattr(part, "dataset", None), *(getattr(part, "datasets", None) or ())]
        parts += [thing for thing in within if isinstance(thing, Dataset) and not any(thing is p for p in parts)]
    return [part for part in parts if callable(getattr(part, "set_epoch", None))]
