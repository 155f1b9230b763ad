"""What a trainer asks loaders for about the batches of a DataLoader."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from mpidata.loading.definition import Epochs
from mpidata.native.item import item_of

__all__ = ["BATCH", "building_text", "item_text", "pack_batch"]

BATCH = struct.Struct("<IIQ??")
"""What a request for a batch begins with: worker, workers, seed, singly, and whether epochs come before the indices."""


def item_text(dataset: int, index: Any) -> str:
    """Name an index, for the note of a loader that dies at it: the same from whatever trainer."""
    return item_of(f"index {index!r} of DataLoader {dataset}")


def building_text(dataset: int) -> str:
    """Name the making of a dataset, likewise."""
    return item_of(f"building DataLoader {dataset}")


def pack_batch(worker: int, workers: int, seed: int, singly: bool, epochs: Epochs, indices: bytes) -> bytes:
    """Make the payload of a request for a batch.

    Parameters
    ----------
    worker, workers : int
        What get_worker_info() is to say on the loader.
    seed : int
        Of random, numpy and torch for this batch; 64 bits.
    singly : bool
        Use ``__getitems__`` for one index at a time, so that one at which a loader dies is known.
    epochs : tuple of int or None
        For `set_epoch` of the dataset, see `epoch_takers`; may be empty.
    indices : bytes
        Pickle of what the batch sampler gave.
    """
    return BATCH.pack(worker, workers, seed, singly, bool(epochs)) + (pickle.dumps(epochs) if epochs else b"") + indices
