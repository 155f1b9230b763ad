"""What copies the batches of a stream to a device."""

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
    """Return what copies batches to the device, the same for all datasets of a trainer, as they share one stream.

    Parameters
    ----------
    trainer : Trainer
        Who draws.
    device : Device or None
        Where batches go; None if they stay in the memory of the CPU.
    asked : mapping
        The arguments that decide what a batch has and where it goes.

    Raises
    ------
    StreamError
        Another dataset was made with other arguments: a batch that was copied ahead would not be what this one gives.

    Notes
    -----
    Nothing is drawn ahead where trainers may die, as what each has drawn is known with each step, nor in replicas of
    several ranks, whose mates get each batch before the script does.
    """
    if trainer not in _of_trainers:
        alone = trainer.members is None and trainer.replica.size == 1
        made = Prefetcher[Any](device, asked["device_prefetch"] if alone else 0) if device is not None else None
        _of_trainers[trainer] = asked, made
        if made is not None:
            trainer.leaves.append(made.finish)  # as copies may read the buffer
    before, prefetcher = _of_trainers[trainer]
    if before != asked and (device is not None or prefetcher is not None):
        raise StreamError(
            f"MPIStreamDataset({_listed(asked)}) cannot be made: this trainer's batches are copied ahead, and another "
            f"dataset has {_listed(before)}. A process has one stream; give its datasets the same arguments."
        )
    return prefetcher


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
