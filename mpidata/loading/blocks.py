"""An epoch as blocks of parts; rows are permuted within each block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.permutation import Permutation

__all__ = ["Block", "Shuffle", "blocks_of", "order_of"]

Shuffle = Literal["rows", "parts"] | None


@dataclass(frozen=True)
class Block:
    """Parts whose rows are permuted together.

    Attributes
    ----------
    epoch, number : int
        Numbers of the epoch, and of the block in it.
    first : int
        First place of the block in the epoch.
    parts : tuple of int
        Numbers of the parts, in the order in which their rows are numbered.
    starts : tuple of int
        Number of the first row of each part, then the number of rows.
    key : tuple of int or None
        Key of the permutation: seed, epoch, stream; None: rows stay in order.
    """

    epoch: int
    number: int
    first: int
    parts: tuple[int, ...]
    starts: tuple[int, ...]
    key: tuple[int, int, int] | None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    def rows_at(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the row at each place of the block."""
        return places if self.key is None else Permutation(self.rows, *self.key).rows(places)

    def places_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the place in the block of each row."""
        return rows if self.key is None else Permutation(self.rows, *self.key).places(rows)


def blocks_of(counts: Sequence[int], shuffle: Shuffle, open_parts: int, seed: int, epoch: int) -> list[Block]:
    """Return the blocks of an epoch.

    Parameters
    ----------
    counts : sequence of int
        Rows of each part, in the order of their names.
    shuffle : "rows", "parts" or None
        One block of all parts; blocks of parts in a different order each epoch; or blocks in the order of names.
    open_parts : int
        Number of parts in a block, except with "rows".
    seed, epoch : int
        The key of the permutations.
    """
    order = np.flatnonzero(counts)  # parts without rows are not read
    if shuffle == "parts":
        order = order[Permutation(len(order), seed, epoch).rows(np.arange(len(order)))]
    size = len(order) if shuffle == "rows" else open_parts
    blocks: list[Block] = []
    first = 0
    for begin in range(0, len(order), size):
        number, parts = begin // size, tuple(order[begin : begin + size].tolist())
        starts = (0, *np.cumsum([counts[part] for part in parts]).tolist())
        stream = 0 if shuffle == "rows" else 1 + number
        blocks.append(Block(epoch, number, first, parts, starts, None if shuffle is None else (seed, epoch, stream)))
        first += starts[-1]
    return blocks


def order_of(block: Block, parts: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Sort the rows of some parts of a block by their places.

    Returns
    -------
    ndarray of uint64, shape (rows,)
        Place << b | row, where b are the bits of the block's number of rows.
    """
    if block.rows >= 1 << 31:
        raise StreamError(f"{block.rows} rows are too many for one block on several loaders. Use shuffle='parts'.")
    where = {part: i for i, part in enumerate(block.parts)}
    ranges = [(block.starts[where[part]], block.starts[where[part] + 1]) for part in parts]
    rows = np.concatenate([np.arange(*ends, dtype=np.int64) for ends in ranges] or [np.empty(0, np.int64)])
    words = block.places_of(rows) << block.rows.bit_length()
    words |= rows
    words.sort()
    return words.view(np.uint64)
