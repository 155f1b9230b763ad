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
    """Return the device that batches are to be copied to; None for batches in the memory of the CPU.

    Parameters
    ----------
    device : str, torch.device, int or None
        As torch takes it. Without an index, the current device of its type.
    what : str
        Who was given it, for the sentence.
    pin_memory : bool
        Was given beside it.

    Raises
    ------
    StreamError
        It names no device, or one that is not here, or whose module of torch has no streams; or `pin_memory` was given.
    """
    if device is None:
        return None
    asked = f"{what}(device={str(device) if isinstance(device, torch.device) else device!r:.100})"
    parsed = _parse(device, asked)
    if parsed.type == "cpu":
        return None
    if pin_memory:
        raise StreamError(
            f"{asked} does not go with pin_memory=True: the batches are on the device, and page-locked memory is used "
            "on the way. Leave pin_memory out."
        )
    return TorchDevice(_present(parsed, asked))


def check_prefetch(prefetch: Any) -> None:
    """Raise StreamError if so many batches are not to be copied ahead of the loop."""
    if isinstance(prefetch, bool) or not isinstance(prefetch, int) or not 1 <= prefetch <= 2:
        raise StreamError(f"device_prefetch={prefetch!r:.100} batches cannot be copied ahead of the loop. Give 1 or 2.")


def _parse(device: Any, asked: str) -> torch.device:
    if isinstance(device, bool) or not isinstance(device, (str, int, torch.device)):
        raise StreamError(f'{asked}: {type(device).__name__} is no device. Give "cuda", "cuda:1" or a torch.device.')
    try:
        return torch.device(device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise StreamError(
            f'{asked} names no device of torch: {reason}. Give "cuda" or "cuda:1", for example.'
        ) from None


def _present(device: torch.device, asked: str) -> torch.device:
    """Return the device with its index, if it is here."""
    module, kind = getattr(torch, device.type, None), device.type
    lacks = [name for name in _NEEDED if not hasattr(module, name)]
    if device.type == "meta" or lacks:
        why = "has no memory" if device.type == "meta" else f"lacks {', '.join(lacks)} in torch {torch.__version__}"
        raise StreamError(
            f'{asked}: batches cannot be copied to {kind!r} ahead of the loop, which {why}. Use "cuda", or leave '
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
            "them: the first one of a trainer is number LOCAL_RANK times trainers.gpus_per_rank."
        )
    return torch.device(kind, index)
