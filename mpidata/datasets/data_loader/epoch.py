"""One pass over a DataLoader: requests batches from loaders in advance, and returns them."""

from __future__ import annotations

import hashlib
import math
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data._utils.pin_memory import pin_memory

from mpidata.datasets.data_loader.remote_dataset import Order, Remote
from mpidata.datasets.epochs.iteration import Iteration, Ready
from mpidata.loading.parcels import unpack
from mpidata.loading.transport import Parcel

__all__ = ["Epoch", "Settings", "derived_seed"]

# If batches arrive faster than a request is answered: the bytes requested in advance, and the limits in batches.
_BYTES_AHEAD, _FEWEST_AHEAD, _MOST_AHEAD = 8 << 20, 2, 16
# Longest wait within the library, so that Python can handle signals.
_SLICE_S = 0.2


def derived_seed(*numbers: int) -> int:
    """Return a 64-bit hash of a seed and the numbers of its use."""
    packed = struct.pack(f"<{len(numbers)}Q", *(number & 0xFFFFFFFFFFFFFFFF for number in numbers))
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Settings:
    """How a DataLoader requests and returns batches.

    Attributes
    ----------
    ahead : int or None
        Largest number of unanswered requests per loader; None: 2, and more if batches are small.
    in_order : bool
        Return batches in their order, not in order of arrival.
    timeout_s : float
        How long to wait for a batch, in seconds; 0: no limit.
    pinned : bool
        Copy batches into page-locked memory.
    """

    ahead: int | None
    in_order: bool
    timeout_s: float
    pinned: bool


class Epoch(Iteration):
    """The batches of one epoch.

    Parameters
    ----------
    remote : Remote
        The dataset.
    batches : iterator of (int, object)
        Number of each batch in the epoch, and its indices.
    request : callable
        Requests a batch, by its number and indices.
    settings : Settings
        How batches are requested and returned.
    rest
        As of `Iteration`.
    """

    def __init__(
        self,
        remote: Remote,
        batches: Iterator[tuple[int, Any]],
        request: Callable[[int, Any], Order],
        settings: Settings,
        *rest: Any,
    ) -> None:
        super().__init__(*rest)
        self._remote, self._batches, self._request, self._settings = remote, batches, request, settings
        self._orders: dict[int, Order] = {}
        self._drawn: tuple[int, Any] | None = None
        self._ahead = settings.ahead or _FEWEST_AHEAD
        remote.take(0.0)
        self.ask()

    def has_more(self) -> bool:
        """Whether a batch is requested or still to be requested."""
        if not self._orders and self._drawn is None:
            self._drawn = next(self._batches, None)
        return bool(self._orders) or self._drawn is not None

    def wait(self) -> Ready:
        """Wait for a batch; raises RuntimeError after the timeout."""
        begun = time.monotonic()
        self._remote.take(0.0)
        while True:
            self.ask()
            order = self._ready()
            if order is not None:
                return self._made(order)
            left_s = (self._settings.timeout_s or math.inf) - (time.monotonic() - begun)
            if left_s <= 0:
                raise RuntimeError(f"DataLoader timed out after {self._settings.timeout_s} seconds")
            self._remote.take(min(_SLICE_S, left_s))

    def ready(self) -> Ready | None:
        """Return the next batch if it has arrived."""
        self._remote.take(0.0)
        order = self._ready()
        return None if order is None else self._made(order)

    def _made(self, order: Order) -> Ready:
        del self._orders[order.number]
        parcel = order.parcel
        assert parcel is not None
        if self._settings.ahead is None:
            self._ahead = max(_FEWEST_AHEAD, min(_MOST_AHEAD, _BYTES_AHEAD // parcel.size))
        samples = len(order.indices) if isinstance(order.indices, (list, tuple)) else 1
        return order.batch, samples, lambda: self._unpacked(parcel)

    def ask(self) -> None:
        """Request as many batches as the loaders may owe.

        Several at once, because each request wakes threads on both sides.
        """
        if not self._remote.wants(self._ahead, len(self._orders) + max(1, self._ahead // 2) - 1):
            return
        while self._remote.wants(self._ahead, len(self._orders)):
            drawn, self._drawn = self._drawn or next(self._batches, None), None
            if drawn is None:
                return
            order = self._request(*drawn)
            self._orders[order.number] = order

    def begin_anew(self, batches: Iterator[tuple[int, Any]]) -> None:
        """Return these batches from now on, and cancel those that were requested."""
        if orders := list(self._orders.values()):
            self._remote.cancel(orders)
        self._batches, self._orders, self._drawn = batches, {}, None

    def _unpacked(self, parcel: Parcel) -> Any:
        batch = unpack(parcel)
        return pin_memory(batch) if self._settings.pinned else batch  # type: ignore[no-untyped-call]

    def _ready(self) -> Order | None:
        """Return the next batch to be returned if it has arrived."""
        if self._settings.in_order:
            order = next(iter(self._orders.values()), None)
            return order if order is not None and order.parcel is not None else None
        return next((order for order in self._orders.values() if order.parcel is not None), None)

    def __del__(self) -> None:
        """Cancel the requests whose batches were not returned."""
        if orders := getattr(self, "_orders", None):
            self._remote.cancel(list(orders.values()))
        super().__del__()
