"""Requests of a trainer for the batches of a DataLoader."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from mpidata.loading.definition import Epochs
from mpidata.native.item import item_of

__all__ = ["BATCH", "building_text", "item_text", "pack_batch"]

BATCH = struct.Struct("<IIQ??")
"""Head of a request for a batch: worker, workers, seed, singly, and whether epochs precede the indices."""


def item_text(dataset: int, index: Any) -> str:
    """Name an index for the report if a loader dies at it; the same on all trainers."""
    return item_of(f"index {index!r} of DataLoader {dataset}")


def building_text(dataset: int) -> str:
    """Name the creation of a dataset, likewise."""
    return item_of(f"building DataLoader {dataset}")


def pack_batch(worker: int, workers: int, seed: int, singly: bool, epochs: Epochs, indices: bytes) -> bytes:
    """Return the payload of a request for a batch.

    Parameters
    ----------
    worker, workers : int
        For get_worker_info() on the loader.
    seed : int
        Of random, numpy and torch for this batch; 64 bits.
    singly : bool
        Call ``__getitems__`` with one index at a time, to find the index at which loaders die.
    epochs : tuple of int or None
        For `set_epoch` of the dataset, see `epoch_takers`; may be empty.
    indices : bytes
        Pickle of the indices from the batch sampler.
    """
    return BATCH.pack(worker, workers, seed, singly, bool(epochs)) + (pickle.dumps(epochs) if epochs else b"") + indices
