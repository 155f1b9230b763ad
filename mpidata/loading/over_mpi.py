"""The classes of transport.py over libmpidata."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from mpidata.errors import MpidataError
from mpidata.loading.transport import Buffer, Closed, Joined, Kind, Lost, Parcel, Request, Retires
from mpidata.native import constants, structures
from mpidata.native.library import Library, check

__all__ = ["MpiLoaders", "MpiRequests", "memory_of", "parts_of"]

# Longest wait within the library, so that Python can handle signals.
_SLICE_S = 0.2
# Up to this size, copying a parcel is faster than creating an owner of its memory.
_COPIED_BYTES = 16384


class _Memory:
    """Owner of a parcel's memory; all arrays and tensors made from the memory keep it alive."""

    __slots__ = ("__array_interface__", "_parcel", "_release")

    def __init__(self, taken: structures.Taken, release: Callable[[int], object]) -> None:
        shape = (taken.bytes,)
        self.__array_interface__ = {"data": (taken.memory, False), "shape": shape, "typestr": "|u1", "version": 3}
        self._parcel = taken.parcel
        self._release = release

    def __del__(self) -> None:
        self._release(self._parcel)


def parts_of(taken: structures.Taken, library: Library) -> list[memoryview]:
    """Return the parts of a parcel, whose memory is released when nothing refers to it any more."""
    view, count = _owned(taken, library), taken.n_parts
    return [view[at : at + size] for at, size in zip(taken.offsets[:count], taken.sizes[:count], strict=True)]


def _owned(taken: structures.Taken, library: Library) -> memoryview:
    return np.asarray(_Memory(taken, library.mpidata_parcel_release)).data


def memory_of(taken: structures.Taken, library: Library) -> bytearray | memoryview:
    """Return the memory of a parcel, whose offsets and sizes become invalid; that of a small one is not aligned."""
    if taken.bytes > _COPIED_BYTES:
        return _owned(taken, library)
    memory = bytearray((ctypes.c_char * taken.bytes).from_address(taken.memory))
    library.mpidata_parcel_release(taken.parcel)
    return memory


def _place(buffer: Buffer) -> tuple[int, int]:
    """Return address and size of a buffer, which the owner must keep."""
    size = memoryview(buffer).nbytes
    if not size:
        return 0, 0
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address, size


class MpiLoaders:
    """`Loaders` of a trainer.

    Parameters
    ----------
    library : Library
        Opened as a trainer.
    when_closed : callable, optional
        Called before `take` returns Closed; `take` raises what it raises.
    """

    def __init__(self, library: Library, when_closed: Callable[[], object] = lambda: None) -> None:
        self._library, self._when_closed = library, when_closed
        self._seen: dict[int, int] = {}
        self._alive: set[int] = set()
        self._alive_seen = 0
        self._lock = threading.Lock()
        self._dropped: deque[tuple[int, int]] = deque()

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that take requests now."""
        with self._lock:
            return self._alive_now()

    def _alive_now(self) -> frozenset[int]:
        taken = structures.Taken()
        # No dataset has this number, so that only news of loaders arrive.
        while (
            self._library.mpidata_trainer_take(0xFFFFFFFF, self._alive_seen, ctypes.byref(taken), 0.0)
            == constants.SUCCESS
        ):
            self._alive_seen += 1
            (self._alive.add if taken.news == constants.LOADER_JOINED else self._alive.discard)(taken.peer)
        return frozenset(self._alive)

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send a request; False: this loader takes no more requests."""
        status: int = self._library.mpidata_trainer_request(loader, dataset, int(kind), number, *_place(payload))
        if status != constants.ERR_AGAIN:
            check(self._library, status)
        return status != constants.ERR_AGAIN

    def take(self, dataset: int, timeout_s: float) -> Parcel | Joined | Retires | Lost | Closed | None:
        """Return the next event of this dataset."""
        self._forget_dropped()
        taken, deadline = structures.Taken(), time.monotonic() + timeout_s
        seen = self._seen.get(dataset, 0)
        while True:
            left = deadline - time.monotonic()
            slice_s = max(0.0, min(left, _SLICE_S))
            status = self._library.mpidata_trainer_take(dataset, seen, ctypes.byref(taken), slice_s)
            if status != constants.ERR_AGAIN or left <= _SLICE_S:
                break
        if status == constants.END:
            self._when_closed()
            return Closed()
        if status == constants.ERR_AGAIN:
            return None
        check(self._library, status)
        if taken.parcel is None:
            self._seen[dataset] = seen + 1
            if taken.news in (constants.LOADER_JOINED, constants.LOADER_RETIRES):
                return Joined(taken.peer) if taken.news == constants.LOADER_JOINED else Retires(taken.peer)
            return Lost(taken.peer, taken.at.decode("utf-8", errors="replace"))
        pickle, *buffers = parts_of(taken, self._library)
        return Parcel(taken.peer, taken.dataset, taken.kind, taken.number, taken.status, pickle, buffers)

    def drop(self, dataset: int) -> None:
        """Have the loaders forget a dataset, and drop its parcels that have arrived."""
        self._dropped.append((os.getpid(), dataset))
        self._forget_dropped()

    def _forget_dropped(self) -> None:
        """Forget the dropped datasets; if garbage collection calls this while the lock is held, the next call does."""
        while self._dropped and self._lock.acquire(blocking=False):
            try:
                process, dataset = self._dropped.popleft()
                if process == os.getpid():  # otherwise a forked child, in which MPI does not work
                    self._forget(dataset)
            finally:
                self._lock.release()

    def _forget(self, dataset: int) -> None:
        with contextlib.suppress(MpidataError):  # the job may be over
            for loader in self._alive_now():
                self.send(loader, dataset, Kind.FORGET, 0, b"")
            self._seen.pop(dataset, None)
            check(self._library, self._library.mpidata_trainer_forget(dataset))


class MpiRequests:
    """`Requests` of a loader.

    Parameters
    ----------
    library : Library
        Opened as a loader.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._kept: dict[int, Sequence[Buffer]] = {}
        self._tickets = 0
        self._at = ""
        self._long = True  # as it starts

    def next(self, timeout_s: float) -> Request | Closed | None:
        """Return the next request."""
        if self._at:
            self.sign_of_life("")
        taken, deadline = structures.Taken(), time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            slice_s = max(0.0, min(left, _SLICE_S))
            status = self._library.mpidata_loader_next(ctypes.byref(taken), slice_s)
            self._let_go()
            if status != constants.ERR_AGAIN or left <= _SLICE_S:
                break
        if status in (constants.ERR_AGAIN, constants.END):
            return None if status == constants.ERR_AGAIN else Closed()
        check(self._library, status)
        (payload,) = parts_of(taken, self._library)[:1]
        return Request(taken.peer, taken.dataset, taken.kind, taken.number, payload)

    def answer(self, request: Request, status: int, pickle: Buffer, buffers: Sequence[Buffer] = ()) -> None:
        """Answer a request."""
        parts = (pickle, *buffers)
        places = [_place(part) for part in parts]
        addresses = (ctypes.c_void_p * len(parts))(*[address for address, _ in places])
        sizes = (ctypes.c_int64 * len(parts))(*[size for _, size in places])
        asked = structures.Taken(
            peer=request.trainer, dataset=request.dataset, kind=request.kind, number=request.number
        )
        self._tickets += 1
        call, ticket = self._library.mpidata_loader_answer, self._tickets
        self._kept[ticket] = parts
        check(self._library, call(ctypes.byref(asked), int(status), len(parts), addresses, sizes, ticket))
        self._let_go()

    def sign_of_life(self, at: str, long: bool = False) -> None:
        """Report that this loader is alive, and what it is doing."""
        if long != self._long:
            self._long = long
            self._library.mpidata_loader_starts(long)
        self._at = at
        self._library.mpidata_beat_at(at.encode("utf-8", errors="replace"))

    def rest(self) -> bool:
        """After Closed, wait until all answers are sent. False: this loader must leave; otherwise it is a spare now."""
        status: int = self._library.mpidata_loader_rest()
        self._let_go()
        if status != constants.END:
            check(self._library, status)
        return status != constants.END

    def close(self) -> None:
        """Leave the job when all answers are sent."""
        check(self._library, self._library.mpidata_loader_close())
        self._kept.clear()

    def _let_go(self) -> None:
        ticket = ctypes.c_int64()
        while self._library.mpidata_loader_sent(ctypes.byref(ticket)) == constants.SUCCESS:
            del self._kept[ticket.value]
