"""A loader's work for FileDatasets: counting and reading parts, and copying rows for batches."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.loaders.part_copies import Copy
from mpidata.loading.blocks import Block, order_of
from mpidata.loading.definition import default_dtype, digest
from mpidata.loading.part_messages import WANTED, Hold, pack_error, part_text, unpack_files
from mpidata.loading.parts import Part
from mpidata.loading.transport import Kind, Request, Requests, Status

__all__ = ["FileWork"]

_Words = npt.NDArray[np.uint64]


@dataclass
class _Held:
    """A trainer's dataset on this loader."""

    copy: Copy
    holds: dict[tuple[int, int], tuple[Hold, Request]] = field(default_factory=dict)


@dataclass
class _Wanted:
    """Rows that a trainer requested: ranges [first, end) of places of a block, of which those in these parts."""

    request: Request
    held: _Held
    block: Block
    parts: tuple[int, ...]
    ranges: npt.NDArray[np.uint64]  # shape (n, 2)
    rows: Future[npt.NDArray[np.int64]] | None = None  # if the block has no other parts


class FileWork:
    """The FileDatasets on a loader; a worker of `serve`.

    Parameters
    ----------
    requests : Requests
        To answer to.

    Notes
    -----
    Trainers with identical definitions, byte for byte, share one copy of the rows. Batches have priority over reading,
    which is done in chunks of rows. One thread sorts the places of later blocks, one finds the rows of requested
    batches; everything else is in the serving thread.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._held: dict[tuple[int, int], _Held] = {}
        self._copies: dict[bytes, Copy] = {}
        self._counts: deque[tuple[Request, Copy]] = deque()
        self._wanted: deque[_Wanted] = deque()
        self._orders: dict[tuple[Block, tuple[int, ...]], Future[_Words]] = {}
        self._sorting = ThreadPoolExecutor(1, "mpidata-order")
        self._permuting = ThreadPoolExecutor(1, "mpidata-rows")

    def take(self, request: Request) -> bool:
        """Take a request about part files."""
        key = request.trainer, request.dataset
        if request.kind == Kind.DEFINE and request.number == 1:
            self._answer(request, lambda: self._define(key, request.payload))
            return True
        held = self._held.get(key)
        if held is None:
            return False
        if request.kind == Kind.COUNT:
            self._counts.append((request, held.copy))
        elif request.kind == Kind.PARTS:
            self._hold(held, request)
        elif request.kind == Kind.CREDIT:
            self._want(held, request)
        elif request.kind == Kind.FORGET:
            self._forget(key, set(np.frombuffer(request.payload, np.int64).tolist()))
        return True

    def work(self) -> bool:
        """Do one piece of work: rows of a batch, a count, or some rows of a part; False if there is none."""
        for wanted in self._wanted:
            if wanted.held.copy.has(wanted.block, wanted.parts):
                self._wanted.remove(wanted)
                self._give(wanted)
                return True
        if self._counts:
            request, copy = self._counts.popleft()
            number = int.from_bytes(request.payload, "little")
            self._alive(part_text(copy.files.parts[number]))
            with default_dtype(copy.files.dtype):
                self._answer(request, lambda: copy.count(number, self._alive))
            return True
        for copy in self._copies.values():
            if (reading := copy.reading()) is not None:
                self._read(copy, *reading)
                return True
        return False

    def _alive(self, text: str) -> None:
        self._requests.sign_of_life(text, long=True)

    def _answer(self, request: Request, call: Callable[[], Any]) -> None:
        try:
            status, answer = Status.OK, pickle.dumps(call())
        except Exception as error:  # readers and transforms may raise anything
            status, answer = Status.EXCEPTION, pack_error(error)
        self._requests.answer(request, status, answer)
        self._requests.sign_of_life("")

    def _define(self, key: tuple[int, int], payload: memoryview) -> None:
        name = digest(payload)
        if name not in self._copies:
            self._copies[name] = Copy(unpack_files(payload))
        self._held[key] = _Held(self._copies[name])

    def _hold(self, held: _Held, request: Request) -> None:
        hold: Hold = pickle.loads(request.payload)
        held.holds[hold.block.epoch, hold.block.number] = hold, request
        held.holds = {key: kept for key, kept in held.holds.items() if key in hold.still}
        if len(hold.parts) < len(hold.block.parts):
            self._sort(hold.block, hold.parts)
        self._let_go()

    def _sort(self, block: Block, parts: tuple[int, ...]) -> Future[_Words]:
        """Start to sort the places of these parts' rows, once for all trainers."""
        key = block, parts
        if key not in self._orders:
            self._orders[key] = self._sorting.submit(order_of, block, parts)
        return self._orders[key]

    def _let_go(self) -> None:
        """Drop the parts and orders that no trainer needs any more."""
        blocks: set[Block] = set()
        for copy in self._copies.values():
            of_copy = [held for held in self._held.values() if held.copy is copy]
            wanted: dict[Block, set[int]] = {}
            for hold, _ in (kept for held in of_copy for kept in held.holds.values()):
                wanted.setdefault(hold.block, set()).update(hold.parts)
            for piece in self._wanted:
                if piece.held.copy is copy:
                    wanted.setdefault(piece.block, set()).update(piece.parts)
            copy.want(wanted)
            blocks |= wanted.keys()
        self._orders = {key: order for key, order in self._orders.items() if key[0] in blocks}
        used = {id(held.copy) for held in self._held.values()}
        self._copies = {name: copy for name, copy in self._copies.items() if id(copy) in used}

    def _want(self, held: _Held, request: Request) -> None:
        epoch, number, n = WANTED.unpack_from(request.payload)
        kept = held.holds.get((epoch, number))
        if kept is None:
            return  # the trainer no longer needs this block
        ranges = np.frombuffer(request.payload, np.uint64, 2 * n, WANTED.size).reshape(n, 2)
        named = np.frombuffer(request.payload, np.uint32, offset=WANTED.size + ranges.nbytes).tolist()
        wanted = _Wanted(request, held, kept[0].block, tuple(named) or kept[0].parts, ranges)
        if len(wanted.parts) == len(wanted.block.parts):
            wanted.rows = self._permuting.submit(_rows_at, wanted.block, ranges)
        self._wanted.append(wanted)

    def _give(self, wanted: _Wanted) -> None:
        try:
            rows, beside = self._chosen(wanted)
            store = wanted.held.copy.store(wanted.block)
            answer = pickle.dumps((store.spec if store else None, wanted.held.copy.spec_of, len(rows)))
            taken = store.take(rows) if store else []
        except Exception as error:  # a block too large, no memory
            self._requests.answer(wanted.request, Status.EXCEPTION, pack_error(error))
            return
        self._requests.answer(wanted.request, Status.OK, answer, [*beside, *taken] if len(rows) else [])
        self._requests.sign_of_life("")

    def _chosen(self, wanted: _Wanted) -> tuple[npt.NDArray[np.int64], list[memoryview]]:
        """Return the rows, and their places within the request if they are not all the requested rows."""
        if wanted.rows is not None:
            return wanted.rows.result(), []
        words = self._sort(wanted.block, wanted.parts).result()
        bits = np.uint64(wanted.block.rows.bit_length())
        bounds = np.searchsorted(words, wanted.ranges << bits)
        chosen = np.concatenate([words[begin:end] for begin, end in bounds])
        rows = (chosen & np.uint64((1 << int(bits)) - 1)).view(np.int64)
        wide = wanted.ranges[:, 1] - wanted.ranges[:, 0]
        if len(rows) == wide.sum():
            return rows, []
        before = wanted.ranges[:, 0] - (np.cumsum(wide) - wide)  # places before each range that are not requested
        places = (chosen >> bits) - np.repeat(before, bounds[:, 1] - bounds[:, 0])
        return rows, [places.astype(np.uint32).data]

    def _read(self, copy: Copy, part: Part, steps: Iterator[object]) -> None:
        """Read some rows; sends an exception to all trainers with this dataset."""
        self._requests.sign_of_life(part_text(part), long=True)
        try:
            with default_dtype(copy.files.dtype):
                ended = next(steps, part) is part
            if ended:
                self._tell_read(copy, part)
            self._requests.sign_of_life("")
        except Exception as error:  # readers and transforms may raise anything
            answer = pack_error(error, part.path)
            copy.give_up()
            for held in self._held.values():
                if held.copy is copy and held.holds:
                    _, request = next(reversed(held.holds.values()))
                    self._requests.answer(request, Status.EXCEPTION, answer)

    def _tell_read(self, copy: Copy, part: Part) -> None:
        """Report it to the first trainer, which shows it."""
        for (trainer, _), held in self._held.items():
            if trainer == 0 and held.copy is copy and held.holds:
                _, request = next(reversed(held.holds.values()))
                self._requests.answer(request, Status.OK, os.fsencode(part.path))

    def _forget(self, key: tuple[int, int], numbers: set[int]) -> None:
        """Drop the named requests for rows, or all and the dataset."""
        self._wanted = deque(
            wanted
            for wanted in self._wanted
            if (wanted.request.trainer, wanted.request.dataset) != key
            or (numbers and wanted.request.number not in numbers)
        )
        if not numbers:
            del self._held[key]
            self._counts = deque(c for c in self._counts if (c[0].trainer, c[0].dataset) != key)
        self._let_go()


def _rows_at(block: Block, ranges: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return block.rows_at(np.concatenate([np.arange(first, end) for first, end in ranges.astype(np.int64)]))
