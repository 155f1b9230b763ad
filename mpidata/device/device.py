"""The interface of a device, and its only implementation, that of torch."""

from __future__ import annotations

from typing import Any, Protocol

import torch

__all__ = ["Device", "Event", "TorchDevice"]

_EVENTS = {"cuda": {"blocking": True}}  # otherwise the host would spin while it waits


class Event(Protocol):
    """A point in the work of a stream."""

    def query(self) -> bool:
        """Whether the work before it is done. Does not block."""

    def synchronize(self) -> None:
        """Block until the work before it is done."""


class Device(Protocol):
    """A device with a stream of its own for copies. The current stream is the caller's, on which it trains.

    Attributes
    ----------
    draws_page_locked : bool
        Whether batches are to be drawn into page-locked memory that torch allocates.
    """

    draws_page_locked: bool

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor, contiguous and in page-locked memory: itself, or a copy."""

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Start to copy a page-locked tensor on the stream of copies, into memory of that stream. Does not block."""

    def copied(self) -> Event:
        """Return an event after the copies that have been started."""

    def wait_for(self, event: Event) -> None:
        """Have the current stream wait for an event. Does not block."""

    def keep(self, tensor: torch.Tensor) -> None:
        """Keep the memory of a copy, after its last reference is gone, until the current stream is done with it."""

    def used(self) -> Event:
        """Return an event after the work that the current stream has been given so far."""


class TorchDevice:
    """A device of torch whose module has streams and events: torch.cuda, torch.xpu, ...

    Parameters
    ----------
    device : torch.device
        With its index.
    """

    draws_page_locked = True

    def __init__(self, device: torch.device) -> None:
        self._device, self._module = device, getattr(torch, device.type)
        self._copies = self._module.Stream(device)

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy to memory of torch's own pool, unless the tensor is in page-locked memory."""
        return tensor.contiguous().pin_memory()

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy without waiting for the host."""
        with self._module.stream(self._copies):
            return tensor.to(self._device, non_blocking=True)

    def copied(self) -> Event:
        """Record an event on the stream of copies."""
        return self._record(self._copies)

    def wait_for(self, event: Event) -> None:
        """Have the current stream wait."""
        self._current().wait_event(event)

    def keep(self, tensor: torch.Tensor) -> None:
        """Report the current stream to torch's allocator."""
        tensor.record_stream(self._current())

    def used(self) -> Event:
        """Record an event on the current stream."""
        return self._record(self._current())

    def _current(self) -> Any:
        return self._module.current_stream(self._device)

    def _record(self, stream: Any) -> Event:
        event: Event = self._module.Event(**_EVENTS.get(self._device.type, {}))
        event.record(stream)  # type: ignore[attr-defined]
        return event
