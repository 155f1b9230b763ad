"""One pass over a DataLoader: asks loaders for batches ahead, and gives them out."""

from __future__ import annotations

import hashlib
import math
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data._utils.pin_memory import pin_memory

from mpidata.data_loader.remote import Order, Remote
from mpidata.loader.figures import Tally
from mpidata.loader.parcels import unpack
from mpidata.loader.turns import Turn

__all__ = ["Epoch", "Settings", "derived_seed"]

# Of batches that come faster than a request takes to be answered, so many bytes are asked for, and so many batches.
_BYTES_AHEAD, _FEWEST_AHEAD, _MOST_AHEAD = 8 << 20, 2, 16
# Longest time in the library while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2


def derived_seed(*numbers: int) -> int:
    """Make 64 bits of a seed and what it is for; a byte of another number makes another one."""
    packed = struct.pack(f"<{len(numbers)}Q", *(number & 0xFFFFFFFFFFFFFFFF for number in numbers))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Settings:
    """How a DataLoader gives out batches.

    Attributes
    ----------
    ahead : int or None
        How many batches may be asked of a loader before it has answered; None: 2, and more of small ones.
    in_order : bool
        Give out batches in their order, as opposed to that in which they come.
    timeout_s : float
        How long to wait for a batch, in seconds; 0: without end.
    pinned : bool
        Put what comes into page-locked memory.
    """

    ahead: int | None
    in_order: bool
    timeout_s: float
    pinned: bool


class Epoch(Iterator[Any]):
    """The batches of one epoch.

    Parameters
    ----------
    remote : Remote
        The dataset.
    batches : iterator of (int, object)
        Number of each batch in the epoch, and the indices that it is made of.
    seed : callable
        Seed of a batch, by its number.
    given : callable
        Told of each batch just before it is given out, by its number; and of the end: None.
    settings : Settings
        How to go about it.
    tally : Tally
        Told of batches and waits, too.
    turn : Turn, optional
        Of this iteration.
    """

    def __init__(
        self,
        remote: Remote,
        batches: Iterator[tuple[int, Any]],
        seed: Callable[[int], int],
        given: Callable[[int | None], None],
        settings: Settings,
        tally: Tally,
        turn: Turn | None = None,
    ) -> None:
        self._remote, self._batches, self._seed, self._given, self._settings = remote, batches, seed, given, settings
        self._tally, self._turn = tally, turn
        self._orders: dict[int, Order] = {}
        self._exhausted = False
        self._ahead = settings.ahead or _FEWEST_AHEAD
        remote.take(0.0)
        self._ask()

    def __next__(self) -> Any:
        """Wait for a batch; raises what the dataset has raised, and RuntimeError after the timeout."""
        if self._turn is not None:
            self._turn.next()
        begun = time.monotonic()
        self._remote.take(0.0)
        while True:
            self._ask()
            order = self._ready()
            if order is not None:
                break
            if self._exhausted and not self._orders:
                self._given(None)
                self._tally.end()
                if self._turn is not None:
                    self._turn.end()
                self._turn = None
                raise StopIteration
            left_s = (self._settings.timeout_s or math.inf) - (time.monotonic() - begun)
            if left_s <= 0:
                raise RuntimeError(f"DataLoader timed out after {self._settings.timeout_s} seconds")
            self._remote.take(min(_SLICE_S, left_s))
        del self._orders[order.number]
        self._given(order.batch)
        samples = len(order.indices) if isinstance(order.indices, (list, tuple)) else 1
        self._tally.batch(samples, time.monotonic() - begun)
        assert order.parcel is not None
        if self._settings.ahead is None:
            self._ahead = max(_FEWEST_AHEAD, min(_MOST_AHEAD, _BYTES_AHEAD // order.parcel.size))
        self._ask()
        batch = unpack(order.parcel)
        if self._turn is not None:
            self._turn.given()
        return pin_memory(batch) if self._settings.pinned else batch  # type: ignore[no-untyped-call]

    def _ready(self) -> Order | None:
        """Find the next batch to be given out, if it has come."""
        if self._settings.in_order:
            order = next(iter(self._orders.values()), None)
            return order if order is not None and order.parcel is not None else None
        return next((order for order in self._orders.values() if order.parcel is not None), None)

    def _ask(self) -> None:
        while self._remote.wants(self._ahead, len(self._orders)) and not self._exhausted:
            drawn = next(self._batches, None)
            if drawn is None:
                self._exhausted = True
                return
            batch, indices = drawn
            order = self._remote.order(batch, indices, self._seed(batch))
            self._orders[order.number] = order

    def __del__(self) -> None:
        """Take back what was asked for and not given out."""
        if orders := getattr(self, "_orders", None):
            self._remote.cancel(list(orders.values()))
            self._tally.flush()
