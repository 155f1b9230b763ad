"""Part files on the loaders, and a trainer's requests for them."""

from __future__ import annotations

import itertools
import pickle
import weakref
from collections.abc import Sequence

import numpy as np

from mpidata.datasets.files.owners import Owners, balance, deal, hand_over
from mpidata.datasets.files.stretch import Segment, Stretch
from mpidata.errors import StreamError
from mpidata.loading.agreement import raise_disagreement
from mpidata.loading.blocks import Block
from mpidata.loading.columns import Spec, refuse_others
from mpidata.loading.definition import dataset_numbers
from mpidata.loading.part_messages import WANTED, Counted, Hold, part_text, raise_error
from mpidata.loading.parts import Part
from mpidata.loading.transport import Joined, Kind, Loaders, Lost, Parcel, Retires, Status

__all__ = ["Remote"]


class Remote:
    """A dataset of part files on the loaders.

    Parameters
    ----------
    loaders : Loaders
        The connection to them.
    first : int
        Number of loaders at the start, which are waited for.
    retries : int
        Number of further attempts at a part at which a loader has died.
    parts : sequence of Part
        Of the dataset.
    definition : bytes
        For the loaders; kept, because loaders may join later.
    agreement : bytes
        The arguments that must be the same on all trainers, see `pack_agreement`, or empty; also kept.

    Attributes
    ----------
    counts : list of int or None
        Rows of each part; None: not counted yet.
    counted : dict of Counted
        What is known of each part, without the omitted ones.
    left_out : set of int
        Omitted parts, at which loaders have died repeatedly.
    read : set of bytes
        Paths of the parts that were read; only the first trainer gets them.
    read_again : list of int
        Parts that were reassigned because their loader was lost.

    Notes
    -----
    For one thread. Requests are complete: a loader reads a part when rows of it are requested, so that another loader
    can answer the requests to a lost one.
    """

    def __init__(
        self, loaders: Loaders, first: int, retries: int, parts: Sequence[Part], definition: bytes, agreement: bytes
    ) -> None:
        self._loaders, self._first, self._retries, self._parts = loaders, first, retries, parts
        self._definition, self._agreement = definition, agreement
        self._dataset = next(dataset_numbers)
        self._numbers = itertools.count(2)
        self._alive: list[int] = []
        self._joined = 0
        self.counts: list[int | None] = [None] * len(parts)
        self.counted: dict[int, Counted] = {}
        self.left_out: set[int] = set()
        self.read: set[bytes] = set()
        self.read_again: list[int] = []
        self._spec: Spec = ()
        self._spec_of = ""
        self._losses: dict[str, int] = {}
        self._counting: dict[int, tuple[int, int]] = {}
        self._holds: dict[Block, Owners] = {}
        self._owed: dict[int, tuple[int, Stretch, Segment, tuple[int, ...]]] = {}
        self._unsent: set[int] = set()  # of them, to loaders that retire or are lost, as a later event reports
        self._homeless: list[tuple[Stretch, Segment, tuple[int, ...]]] = []
        weakref.finalize(self, loaders.drop, self._dataset).atexit = False

    @property
    def ready(self) -> bool:
        """Whether the first loaders have joined, and one is alive."""
        return self._joined >= self._first and bool(self._alive)

    @property
    def alive(self) -> int:
        """Number of loaders."""
        return len(self._alive)

    def take(self, timeout_s: float) -> None:
        """Handle the events that have arrived; sleeps until one arrives or the timeout. Raises errors of loaders."""
        event = self._loaders.take(self._dataset, timeout_s)
        while event is not None:
            if isinstance(event, Joined):
                self._join(event.loader)
            elif isinstance(event, Retires):
                self._hand_over(event.loader)
                self._ask_again([number for number in self._unsent if self._owed[number][0] == event.loader])
            elif isinstance(event, Lost):
                self._lose(event)
            elif isinstance(event, Parcel):
                self._receive(event)
            else:
                raise StreamError("The job is being stopped: no further batch will arrive.")
            event = self._loaders.take(self._dataset, 0.0)

    def count(self) -> None:
        """Request the number of rows of all parts."""
        for part in range(len(self._parts)):
            self._count(part)

    def ask(self, stretch: Stretch, segments: Sequence[Segment]) -> None:
        """Request the rows of some batches."""
        for segment in segments:
            owners = self._owners(segment.block)
            for loader in dict.fromkeys(owners.values()):
                self._ask(loader, stretch, segment, ())

    def prepare(self, block: Block) -> None:
        """Let the loaders read a block whose batches come later."""
        self._owners(block)

    def done_with(self, epoch: int, place: int) -> None:
        """Note that blocks that end before a place of an epoch are no longer needed; loaders learn of it later."""
        self._holds = {
            block: owners
            for block, owners in self._holds.items()
            if block.epoch > epoch or (block.epoch == epoch and block.first + block.rows > place)
        }

    def cancel(self) -> None:
        """Cancel all requests."""
        numbers: dict[int, list[int]] = {}
        for number, (loader, *_) in self._owed.items():
            numbers.setdefault(loader, []).append(number)
        self._owed, self._unsent, self._homeless, self._holds = {}, set(), [], {}
        for loader, gone in numbers.items():
            self._loaders.send(loader, self._dataset, Kind.FORGET, 0, np.array(gone, np.int64).tobytes())

    def _in_order(self, path: str, spec: Spec, buffers: list[memoryview]) -> list[memoryview]:
        """Return an answer's columns in the order of the first answer; raises StreamError if the columns differ."""
        if not self._spec:
            self._spec, self._spec_of = spec, path
        elif spec != self._spec:
            refuse_others(path, spec, self._spec, self._spec_of)
            of = dict(zip(spec, buffers[-len(spec) :], strict=True))
            return buffers[: -len(spec)] + [of[column] for column in self._spec]
        return buffers

    def _rows(self) -> list[int]:
        return [count or 0 for count in self.counts]

    def _join(self, loader: int) -> None:
        self._joined += 1
        if loader not in self._loaders.alive():
            return  # the next event is that it is lost
        self._alive.append(loader)
        self._loaders.send(loader, self._dataset, Kind.DEFINE, 1, self._definition)
        if self._agreement:
            self._loaders.send(loader, self._dataset, Kind.AGREE, 0, self._agreement)
        homeless, self._homeless = self._homeless, []
        for stretch, segment, parts in homeless:
            self._ask_others(stretch, segment, parts)
        for part in [part for part, owner in self._counting.values() if owner < 0]:
            self._count(part)
        self._counting = {number: which for number, which in self._counting.items() if which[1] >= 0}

    def _lose(self, lost: Lost) -> None:
        """Reassign a lost loader's parts, and send the requests that it owed to the other loaders."""
        self._losses[lost.at] = self._losses.get(lost.at, 0) + 1
        if self._losses[lost.at] > self._retries:
            self.left_out |= {number for number, part in enumerate(self._parts) if part_text(part) == lost.at}
        self._hand_over(lost.loader)
        self._ask_again([number for number, owe in self._owed.items() if owe[0] == lost.loader])
        for number, (part, _) in [item for item in self._counting.items() if item[1][1] == lost.loader]:
            del self._counting[number]
            self._count(part)

    def _hand_over(self, loader: int) -> None:
        """Reassign the parts of a loader to others."""
        if loader in self._alive:
            self._alive.remove(loader)
        held = {part for owners in self._holds.values() for part, owner in owners.items() if owner == loader}
        self.read_again += held - self.left_out
        for block, owners in self._holds.items():
            self._replace(block, owners, loader)

    def _replace(self, block: Block, owners: Owners, lost: int) -> None:
        theirs = [part for part, loader in owners.items() if loader == lost]
        for part in theirs:
            del owners[part]
        theirs = [part for part in theirs if part not in self.left_out]
        for part in self.left_out & owners.keys():
            del owners[part]
        if self._alive:
            hand_over(owners, theirs, self._rows(), self._alive)
        else:
            owners.update(dict.fromkeys(theirs, -1))
        for loader in {owners[part] for part in theirs} - {-1}:
            self._hold(loader, block, owners)

    def _ask_again(self, numbers: list[int]) -> None:
        """Send these requests to other loaders."""
        self._unsent.difference_update(numbers)
        for number in numbers:
            _, stretch, segment, parts = self._owed.pop(number)
            stretch.owed.discard(number)
            self._ask_others(stretch, segment, parts)

    def _ask_others(self, stretch: Stretch, segment: Segment, parts: tuple[int, ...]) -> None:
        """Request the rows of these parts, which a lost loader owed, from the loaders that hold the parts now."""
        kept = tuple(part for part in parts if part not in self.left_out)
        if not self._alive:
            stretch.owed.add(-1)
            self._homeless.append((stretch, segment, kept))
            return
        stretch.owed.discard(-1)
        owners = self._owners(segment.block)
        for loader in dict.fromkeys(owners[part] for part in kept):
            self._ask(loader, stretch, segment, tuple(part for part in kept if owners[part] == loader))

    def _owners(self, block: Block) -> Owners:
        """Return the loaders that hold the parts of a block; assigns the parts of a new block."""
        owners = self._holds.get(block)
        if owners is None:
            before = next((o for b, o in reversed(self._holds.items()) if b.parts == block.parts), None)
            there = [part for part in block.parts if part not in self.left_out]
            dealt = deal(there, self._rows(), self._alive) if before is None else before
            owners = self._holds[block] = balance(dealt, self._rows(), self._alive)
            for loader in dict.fromkeys(owners.values()):
                self._hold(loader, block, owners)
        elif -1 in owners.values():
            homeless = [part for part, loader in owners.items() if loader == -1]
            hand_over(owners, homeless, self._rows(), self._alive)
            for loader in {owners[part] for part in homeless}:
                self._hold(loader, block, owners)
        return owners

    def _hold(self, loader: int, block: Block, owners: Owners) -> None:
        still = frozenset((block.epoch, block.number) for block in self._holds)
        mine = tuple(part for part in block.parts if owners.get(part) == loader)
        payload = pickle.dumps(Hold(block, mine, still))
        self._loaders.send(loader, self._dataset, Kind.PARTS, next(self._numbers), payload)

    def _ask(self, loader: int, stretch: Stretch, segment: Segment, parts: tuple[int, ...]) -> None:
        number = next(self._numbers)
        named = np.array(parts, np.uint32).tobytes()
        owners = self._holds[segment.block]
        mine = parts or tuple(part for part, owner in owners.items() if owner == loader)
        stretch.owed.add(number)
        self._owed[number] = loader, stretch, segment, mine
        block = segment.block
        wanted = WANTED.pack(block.epoch, block.number, len(segment.ranges))
        wanted += np.array(segment.ranges, np.uint64).tobytes()
        if not self._loaders.send(loader, self._dataset, Kind.CREDIT, number, wanted + named):
            self._unsent.add(number)

    def _count(self, part: int) -> None:
        if part in self.left_out:
            self.counts[part] = 0
            return
        number = next(self._numbers)
        loader = self._alive[part * len(self._alive) // len(self._parts)] if self._alive else -1
        self._counting[number] = part, loader
        if loader >= 0:
            self._loaders.send(loader, self._dataset, Kind.COUNT, number, part.to_bytes(8, "little"))

    def _receive(self, parcel: Parcel) -> None:
        if parcel.kind == Kind.AGREE:
            raise_disagreement(parcel.pickle)
        if parcel.status != Status.OK:
            raise_error(parcel.pickle)
        if parcel.kind == Kind.COUNT and parcel.number in self._counting:
            part, _ = self._counting.pop(parcel.number)
            self.counted[part] = pickle.loads(parcel.pickle)
            self.counts[part] = self.counted[part].rows
        elif parcel.kind == Kind.CREDIT and parcel.number in self._owed:
            _, stretch, segment, _ = self._owed.pop(parcel.number)
            spec, path, rows = pickle.loads(parcel.pickle)
            buffers = self._in_order(path, spec, list(parcel.buffers)) if rows else []
            stretch.receive(parcel.number, self._spec, rows, buffers, segment)
        elif parcel.kind == Kind.PARTS:
            self.read.add(bytes(parcel.pickle))
