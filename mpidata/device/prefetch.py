"""Batches on a device, copied ahead of the training loop."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

import torch

from mpidata.device.choice import check_prefetch, choose_device
from mpidata.device.device import Device, Event
from mpidata.device.tensors import map_tensors

__all__ = ["Fetched", "MakePrefetcher", "Prefetcher", "choose_prefetcher"]

_T = TypeVar("_T")
Fetched: TypeAlias = tuple[_T, Callable[[], Any]]
"""What the caller knows of a batch, and what makes the batch, in the memory of the CPU or then on the device."""

MakePrefetcher: TypeAlias = Callable[[bool], "Prefetcher[Any] | None"]
"""Makes what copies the batches of an iteration; with true, none of them ahead of the loop."""

# So many steps may wait on the device behind the one that it makes: each keeps the memory of its batch.
_STEPS_BEHIND = 2


class Prefetcher(Generic[_T]):
    """Copies batches to a device, some of them before the loop asks.

    Parameters
    ----------
    device : Device
        Where they go.
    ahead : int
        How many batches are copied ahead, at most; with 0 each is copied when the loop asks for it.

    Notes
    -----
    One thread. In page-locked memory are at most `ahead` + 2 batches; on the device those that the script keeps,
    `ahead` more, and those of two steps. Nothing blocks but `wait`, and a host that is further ahead of the device.
    """

    def __init__(self, device: Device, ahead: int) -> None:
        self.ahead = ahead
        self._device = device
        self._copied: deque[Fetched[_T]] = deque()
        self._read: deque[tuple[Event, list[torch.Tensor]]] = deque()  # memory that copies may still read
        self._used: deque[Event] = deque()  # behind the steps on the batches before
        self._failed: Exception | None = None

    @property
    def waiting(self) -> bool:
        """Whether a batch was fetched that the loop has not had."""
        return bool(self._copied)

    def next(self, wait: Callable[[], Fetched[_T]], ready: Callable[[], Fetched[_T] | None]) -> Fetched[_T]:
        """Get the next batch, and begin to copy those after it.

        Parameters
        ----------
        wait : callable
            Waits for the next batch.
        ready : callable
            Gets the next batch if it is there; does not block.

        Returns
        -------
        object, callable
            What the caller knows of the batch; and what gives it out, once, in the stream that is current then. This
            raises what the making of the batch has raised.
        """
        self._stay_near()
        self._let_go(block=not self._copied)  # who waits may wait for the memory of the batches before
        if not self._copied:
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            self._copy(*wait())
        try:
            while self._failed is None and len(self._copied) <= self.ahead and (fetched := ready()) is not None:
                self._copy(*fetched)
        except Exception as error:  # the batches before it come first
            self._failed = error
        return self._copied.popleft()

    def now(self, batch: Any) -> Any:
        """Return a batch on the device; for a caller that has only this one."""
        self._stay_near()
        self._let_go(block=False)
        return self._begin(batch)()

    def clear(self) -> None:
        """Forget what was fetched and given to nobody."""
        self._copied.clear()
        self._failed = None

    def finish(self) -> None:
        """Block until the copies that have begun are done, and let go of what they read."""
        self._let_go(block=True)

    def _copy(self, known: _T, make: Callable[[], Any]) -> None:
        try:
            give = self._begin(make())
        except Exception as error:
            give = _raiser(error)
        self._copied.append((known, give))

    def _begin(self, batch: Any) -> Callable[[], Any]:
        """Begin to copy; returns what gives the copy out."""
        while len(self._read) > self.ahead:
            self._let_go_of_first()
        device, read = self._device, list[torch.Tensor]()
        done = dict[int, tuple[torch.Tensor, torch.Tensor]]()  # by id, as nested tensors share their offsets

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in done:
                read.append(device.pin(tensor))
                done[id(tensor)] = tensor, device.copy(read[-1])
            return done[id(tensor)][1]

        try:
            moved = map_tensors(batch, copy)
        finally:
            event = device.copied()
            self._read.append((event, read))
        copies = [copied for _, copied in done.values()]

        def give() -> Any:
            device.wait_for(event)
            for tensor in copies:
                device.keep(tensor)
            return moved

        return give

    def _stay_near(self) -> None:
        """Block while the device is more than some steps behind, as it keeps the memory of their batches."""
        self._used.append(self._device.used())
        if len(self._used) > _STEPS_BEHIND:
            self._used.popleft().synchronize()

    def _let_go(self, block: bool) -> None:
        """Let go of memory whose copies are done; of all, with `block`."""
        while self._read and (block or self._read[0][0].query()):
            self._let_go_of_first()

    def _let_go_of_first(self) -> None:
        self._read[0][0].synchronize()
        self._read.popleft()

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        """Keep what copies read until they are done."""
        if not at_exit():
            self.finish()


def _raiser(error: Exception) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give


def choose_prefetcher(what: str, device: Any, prefetch: Any, *, pin_memory: bool) -> MakePrefetcher:
    """Return what makes the prefetcher of each iteration, or None for batches in the memory of the CPU.

    Parameters are those of `check_prefetch` and `choose_device`, and what they raise comes from here.
    """
    check_prefetch(prefetch)
    chosen = choose_device(device, what, pin_memory=pin_memory)
    return lambda nothing_ahead: None if chosen is None else Prefetcher(chosen, 0 if nothing_ahead else prefetch)
