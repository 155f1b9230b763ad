"""The requests of a trainer to the loaders in advance: stretches of batches, from the next one on."""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from collections.abc import Callable, Iterator

from mpidata.datasets.epochs.share_assignment import Dealing, Places
from mpidata.datasets.files.remote_parts import Remote
from mpidata.datasets.files.stretch import Segment, Stretch
from mpidata.loading.blocks import Block

__all__ = ["ReadAhead"]

# Batches and stretches that are requested in advance, and the number of blocks within which they must be.
_BATCHES, _STRETCHES, _BLOCKS = 8, 3, 2
# A request costs a loader and the trainer some tenths of a millisecond. Hence the bytes of a stretch per loader, and
# the largest numbers of bytes and batches of a stretch.
_ANSWER_BYTES, _STRETCH_BYTES, _LONGEST = 2 << 20, 32 << 20, 256
_SLICE_S = 0.2


class ReadAhead:
    """The requested stretches.

    Parameters
    ----------
    remote : Remote
        The dataset on the loaders.
    dealing : Dealing
        The places of this trainer in each epoch.
    blocks : callable
        Returns the blocks of an epoch.

    Notes
    -----
    For one thread. Calls sleep while there is no loader.
    """

    def __init__(self, remote: Remote, dealing: Dealing, blocks: Callable[[int], list[Block]]) -> None:
        self._remote, self._dealing, self._make_blocks = remote, dealing, blocks
        self._stretches: deque[Stretch] = deque()
        self._blocks: dict[int, list[Block]] = {}
        self._row_bytes = 0

    def at(self, epoch: int, number: int) -> Stretch:
        """Return the stretch with this batch; if that is not the next one, cancels all other requests."""
        if not (self._stretches and self._stretches[0].has(epoch, number)):
            self.clear()
            self._ask(epoch, number)
        return self._stretches[0]

    def go_on(self, epoch: int, number: int) -> None:
        """Request more if this batch was the last of its stretch."""
        if number + 1 == self._stretches[0].end:
            self._row_bytes = self._stretches.popleft().row_bytes or self._row_bytes
            self._ask(epoch, number + 1)

    def clear(self) -> None:
        """Cancel all requests."""
        self._remote.cancel()
        self._stretches.clear()
        self._blocks.clear()

    def _ask(self, epoch: int, number: int) -> None:
        """Request batches from this one on that were not requested yet, also of the next epochs."""
        if number == self._dealing.batches(epoch):
            epoch, number = epoch + 1, 0
        self._remote.done_with(epoch, self._first(epoch, number))
        while (self._count() < _BATCHES or len(self._stretches) < _STRETCHES) and self._may_ask(epoch, number):
            while not self._remote.ready:
                self._remote.take(_SLICE_S)
            self._ask_after_last(epoch, number)
        self._read_ahead(epoch, number)

    def _count(self) -> int:
        return sum(stretch.end - stretch.first for stretch in self._stretches)

    def _may_ask(self, epoch: int, number: int) -> bool:
        """Whether to request more: always if nothing is requested, otherwise if the next block may also be held."""
        if not self._stretches:
            return True
        at, batch = self._after_last()
        held = self._block_of(at, self._dealing.places(at, batch)[-1].stop - 1)
        held -= self._block_of(epoch, self._first(epoch, number))
        return self._remote.ready and held < _BLOCKS

    def _block_of(self, epoch: int, place: int) -> int:
        """Return the number of blocks before that of a place, from the first epoch on."""
        return epoch * len(self._of(epoch)) + self._index(epoch, place)

    def _after_last(self) -> tuple[int, int]:
        """Epoch and number of the batch after the requested ones."""
        last = self._stretches[-1]
        return (last.epoch, last.end) if last.end < self._dealing.batches(last.epoch) else (last.epoch + 1, 0)

    def _first(self, epoch: int, number: int) -> int:
        """First place of a batch."""
        return self._dealing.places(epoch, number)[0].start

    def _length(self, epoch: int, number: int) -> int:
        """Choose the number of batches in the next stretch."""
        batch_bytes = self._row_bytes * _rows(self._dealing.places(epoch, number))
        wanted = min(max(1, self._remote.alive) * _ANSWER_BYTES, _STRETCH_BYTES)
        return min(_LONGEST, -(-wanted // batch_bytes)) if batch_bytes else 1

    def _ask_after_last(self, epoch: int, number: int) -> None:
        if self._stretches:
            epoch, number = self._after_last()
        batches = self._batches(epoch, number)
        stretch = Stretch(epoch, number, list(map(_rows, batches)))
        self._stretches.append(stretch)
        self._remote.ask(stretch, list(self._segments(epoch, batches)))

    def _batches(self, epoch: int, number: int) -> list[Places]:
        """Choose the places of the batches of a stretch; a batch with rows of several blocks gets its own stretch."""
        chosen, length = [self._dealing.places(epoch, number)], self._length(epoch, number)
        block = self._of(epoch)[self._index(epoch, chosen[0][0].start)]
        for batch in range(number + 1, min(number + length, self._dealing.batches(epoch))):
            places = self._dealing.places(epoch, batch)
            if places[0].start < chosen[-1][-1].stop or places[-1].stop > block.first + block.rows:
                break
            chosen.append(places)
        return chosen

    def _segments(self, epoch: int, batches: list[Places]) -> Iterator[Segment]:
        joined: list[tuple[int, int]] = []
        for places in itertools.chain.from_iterable(batches):
            begin = joined.pop()[0] if joined and joined[-1][1] == places.start else places.start
            joined.append((begin, places.stop))
        offset, at = 0, self._index(epoch, joined[0][0])
        for block in self._of(epoch)[at : self._index(epoch, joined[-1][1] - 1) + 1]:
            clipped = ((max(first - block.first, 0), min(end - block.first, block.rows)) for first, end in joined)
            segment = Segment(block, tuple((first, end) for first, end in clipped if first < end), offset)
            if segment.ranges:
                yield segment
                offset += segment.rows

    def _read_ahead(self, epoch: int, number: int) -> None:
        """Let the loaders read the block after that of the next batch."""
        self._blocks = {at: blocks for at, blocks in self._blocks.items() if at >= epoch}
        if self._remote.ready:
            after = self._of(epoch)[self._index(epoch, self._first(epoch, number)) + 1 :][:1]
            self._remote.prepare((after or self._of(epoch + 1))[0])

    def _index(self, epoch: int, place: int) -> int:
        """Return the index of the block of a place."""
        return bisect.bisect_right(self._of(epoch), place, key=lambda block: block.first) - 1

    def _of(self, epoch: int) -> list[Block]:
        """Return the blocks of an epoch."""
        if epoch not in self._blocks:
            self._blocks[epoch] = self._make_blocks(epoch)
        return self._blocks[epoch]


def _rows(places: Places) -> int:
    return sum(map(len, places))
