"""The prefetcher that copies the batches of a stream to a device."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from mpidata.device.choice import check_prefetch, choose_device
from mpidata.device.device import Device
from mpidata.device.prefetch import Prefetcher
from mpidata.errors import StreamError
from mpidata.trainer.shares.grouping import Grouping
from mpidata.trainer.trainer import Trainer

__all__ = ["choose_device_of_stream", "prefetcher_of"]

_Made = tuple[Mapping[str, Any], "Prefetcher[Any] | None"]
_of_trainers: weakref.WeakKeyDictionary[Trainer, _Made] = weakref.WeakKeyDictionary()


def choose_device_of_stream(grouping: Grouping, device: Any, prefetch: Any, *, pin_memory: bool) -> Device | None:
    """Return the device of these arguments of MPIStreamDataset, None for the CPU; raises StreamError as it does."""
    check_prefetch(prefetch)
    chosen = choose_device(device, "MPIStreamDataset", pin_memory=pin_memory)
    if chosen is not None and grouping.most is None:
        raise StreamError(
            f"device={str(device)!r} needs batch_size: batches are copied to a device, not single samples. Give "
            "batch_size here, and batch_size=None to a DataLoader around the stream."
        )
    return chosen


def prefetcher_of(trainer: Trainer, device: Device | None, asked: Mapping[str, Any]) -> Prefetcher[Any] | None:
    """Return the prefetcher of a trainer, the same for all its datasets, because they share one stream.

    Parameters
    ----------
    trainer : Trainer
        The trainer that draws.
    device : Device or None
        The device of the batches; None if they stay in CPU memory.
    asked : mapping
        The arguments that determine the contents and the device of a batch.

    Raises
    ------
    StreamError
        Another dataset has other arguments, so batches that were copied ahead would not fit this one.

    Notes
    -----
    Nothing is drawn ahead if trainers may die, because each step must know what each has drawn, nor in replicas of
    several ranks, whose mates get each batch before the script does.
    """
    if trainer not in _of_trainers:
        alone = trainer.members is None and trainer.replica.size == 1
        made = Prefetcher[Any](device, asked["device_prefetch"] if alone else 0) if device is not None else None
        _of_trainers[trainer] = asked, made
        if made is not None:
            trainer.leaves.append(made.finish)  # because copies may read the buffer
    before, prefetcher = _of_trainers[trainer]
    if before != asked and (device is not None or prefetcher is not None):
        raise StreamError(
            f"MPIStreamDataset({_listed(asked)}) cannot be created: this trainer copies batches ahead, and another "
            f"dataset has {_listed(before)}. A process has one stream: give its datasets the same arguments."
        )
    return prefetcher


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
