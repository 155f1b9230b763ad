"""The device that a script asks for."""

from __future__ import annotations

import socket
from typing import Any

import torch

from mpidata.device.device import Device, TorchDevice
from mpidata.errors import StreamError

__all__ = ["check_prefetch", "choose_device"]

_NEEDED = ("is_available", "device_count", "current_device", "current_stream", "stream", "Stream", "Event")


def choose_device(device: Any, what: str, *, pin_memory: bool = False) -> Device | None:
    """Return the device to which batches must be copied; None for batches in CPU memory.

    Parameters
    ----------
    device : str, torch.device, int or None
        As torch takes it. Without an index, the current device of its type.
    what : str
        The class that was given the device, for the error message.
    pin_memory : bool
        The argument `pin_memory` of that class.

    Raises
    ------
    StreamError
        `device` is invalid or not on this host, its torch module has no streams, or `pin_memory` was also given.
    """
    if device is None:
        return None
    asked = f"{what}(device={str(device) if isinstance(device, torch.device) else device!r:.100})"
    parsed = _parse(device, asked)
    if parsed.type == "cpu":
        return None
    if pin_memory:
        raise StreamError(
            f"{asked} cannot be combined with pin_memory=True: the batches are on the device, and the copies already "
            "use page-locked memory. Leave pin_memory out."
        )
    return TorchDevice(_present(parsed, asked))


def check_prefetch(prefetch: Any) -> None:
    """Raise StreamError if `prefetch`, the number of batches copied ahead of the loop, is not 1 or 2."""
    if isinstance(prefetch, bool) or not isinstance(prefetch, int) or not 1 <= prefetch <= 2:
        raise StreamError(f"device_prefetch={prefetch!r:.100} batches cannot be copied ahead of the loop. Give 1 or 2.")


def _parse(device: Any, asked: str) -> torch.device:
    if isinstance(device, bool) or not isinstance(device, (str, int, torch.device)):
        raise StreamError(f'{asked}: {type(device).__name__} is not a device. Give "cuda", "cuda:1" or a torch.device.')
    try:
        return torch.device(device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise StreamError(f'{asked} is not a torch device: {reason}. Give "cuda" or "cuda:1".') from None


def _present(device: torch.device, asked: str) -> torch.device:
    """Return the device with its index, if it is here."""
    module, kind = getattr(torch, device.type, None), device.type
    lacks = [name for name in _NEEDED if not hasattr(module, name)]
    if device.type == "meta" or lacks:
        why = "has no memory" if device.type == "meta" else f"lacks {', '.join(lacks)} in torch {torch.__version__}"
        raise StreamError(
            f'{asked}: batches cannot be copied ahead of the loop to {kind!r}, which {why}. Use "cuda", or leave '
            "device out and move the batches yourself: batch[name].to(...)."
        )
    assert module is not None
    count = module.device_count() if module.is_available() else 0
    if not count:
        raise StreamError(
            f"{asked}: torch {torch.__version__} sees no device of type {kind!r} on {socket.gethostname()}. Run "
            "`mpidata doctor` there, or leave device out."
        )
    index = module.current_device() if device.index is None else device.index
    if not 0 <= index < count:
        seen = ", ".join(f"{kind}:{number}" for number in range(count))
        raise StreamError(
            f"{asked}: torch sees {count} of type {kind!r} on {socket.gethostname()}: {seen}. Name one of "
            "them: the index of a trainer's first device is LOCAL_RANK * trainers.gpus_per_rank."
        )
    return torch.device(kind, index)
