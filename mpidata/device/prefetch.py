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
"""What the caller knows of a batch, and a callable that makes the batch, in CPU memory or then on the device."""

MakePrefetcher: TypeAlias = Callable[[bool], "Prefetcher[Any] | None"]
"""Makes the prefetcher of an iteration; with true, it copies no batch ahead of the loop."""

# Number of steps that may be queued on the device behind the current one: each keeps the memory of its batch.
_STEPS_BEHIND = 2


class Prefetcher(Generic[_T]):
    """Copies batches to a device, some of them before the loop asks.

    Parameters
    ----------
    device : Device
        Destination of the copies.
    ahead : int
        Largest number of batches that are copied ahead; with 0 each is copied when the loop asks for it.

    Notes
    -----
    Call from one thread. At most `ahead` + 2 batches are in page-locked memory; on the device are those that the script
    keeps, `ahead` more, and those of two steps. Only `wait` blocks, and a host that is further ahead of the device.
    """

    def __init__(self, device: Device, ahead: int) -> None:
        self.ahead = ahead
        self._device = device
        self._copied: deque[Fetched[_T]] = deque()
        self._read: deque[tuple[Event, list[torch.Tensor]]] = deque()  # memory that copies may still read
        self._used: deque[Event] = deque()  # after the steps on earlier batches
        self._failed: Exception | None = None

    @property
    def waiting(self) -> bool:
        """Whether a batch was fetched that the loop has not received."""
        return bool(self._copied)

    def next(self, wait: Callable[[], Fetched[_T]], ready: Callable[[], Fetched[_T] | None]) -> Fetched[_T]:
        """Return the next batch, and start to copy those after it.

        Parameters
        ----------
        wait : callable
            Waits for the next batch.
        ready : callable
            Returns the next batch, or None if there is none yet; does not block.

        Returns
        -------
        object, callable
            What the caller knows of the batch; and a callable that returns the batch, once, in the stream that is then
            current, or raises what making the batch raised.
        """
        self._stay_near()
        self._let_go(block=not self._copied)  # `wait` may wait for the memory of earlier batches
        if not self._copied:
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            self._copy(*wait())
        try:
            while self._failed is None and len(self._copied) <= self.ahead and (fetched := ready()) is not None:
                self._copy(*fetched)
        except Exception as error:  # earlier batches come first
            self._failed = error
        return self._copied.popleft()

    def now(self, batch: Any) -> Any:
        """Return a copy of a batch on the device; for a caller that has only this one."""
        self._stay_near()
        self._let_go(block=False)
        return self._begin(batch)()

    def clear(self) -> None:
        """Drop the batches that were fetched but not returned."""
        self._copied.clear()
        self._failed = None

    def finish(self) -> None:
        """Block until all started copies are done, and release the memory that they read."""
        self._let_go(block=True)

    def _copy(self, known: _T, make: Callable[[], Any]) -> None:
        try:
            give = self._begin(make())
        except Exception as error:
            give = _raiser(error)
        self._copied.append((known, give))

    def _begin(self, batch: Any) -> Callable[[], Any]:
        """Start to copy; return a callable that returns the copy."""
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
        """Block while the device is more than `_STEPS_BEHIND` steps behind, as it keeps the memory of their batches."""
        self._used.append(self._device.used())
        if len(self._used) > _STEPS_BEHIND:
            self._used.popleft().synchronize()

    def _let_go(self, block: bool) -> None:
        """Release memory whose copies are done; with `block`, wait and release all."""
        while self._read and (block or self._read[0][0].query()):
            self._let_go_of_first()

    def _let_go_of_first(self) -> None:
        self._read[0][0].synchronize()
        self._read.popleft()

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        """Keep the memory that copies read until they are done."""
        if not at_exit():
            self.finish()


def _raiser(error: Exception) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give


def choose_prefetcher(what: str, device: Any, prefetch: Any, *, pin_memory: bool) -> MakePrefetcher:
    """Return a callable that makes the prefetcher of each iteration, or None for batches in CPU memory.

    Takes the parameters of `check_prefetch` and `choose_device`, and raises what they raise.
    """
    check_prefetch(prefetch)
    chosen = choose_device(device, what, pin_memory=pin_memory)
    return lambda nothing_ahead: None if chosen is None else Prefetcher(chosen, 0 if nothing_ahead else prefetch)
