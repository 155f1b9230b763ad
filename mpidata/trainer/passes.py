"""One pass over the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from mpidata.errors import StreamError
from mpidata.tensors import part_weights
from mpidata.trainer.batches.alike import Batch, BatchMemory
from mpidata.trainer.batches.choice import Memory
from mpidata.trainer.batches.packed import PackedMemory
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.shares.grouping import BySize
from mpidata.trainer.trainer import Trainer

__all__ = ["Pass", "Refused"]


class Pass(Iterator[dict[str, torch.Tensor]]):
    """A pass. Holds no batch, so that the memory of one comes back when the user lets go of it.

    But where a framework fetches ahead: what it has not used when its loop is left, the next pass begins with.

    Parameters
    ----------
    trainer : Trainer
        Who draws.
    memory : BatchMemory, PackedMemory or BySize
        Of the batches.
    limit : int or None
        After how many it ends; None: where the stream does.
    constants : DrawnConstants or None
        Those of batches, in a job that has any.
    given_back : deque
        What other passes over the same dataset have given back, for whoever is next.
    ahead : int
        How many batches, or single samples, the caller fetches before it uses them.
    """

    def __init__(
        self,
        trainer: Trainer,
        memory: Memory,
        limit: int | None,
        constants: DrawnConstants | None,
        given_back: deque[dict[str, torch.Tensor]],
        ahead: int,
    ) -> None:
        self._trainer = trainer
        self._constants = constants
        self._memory = memory
        copies = trainer.plan.policy != "fifo" or (constants is not None and constants.views)
        self._pages = memory if isinstance(memory, BatchMemory) and not (memory.pinned or copies) else None
        self._limit = limit
        self._count = 0
        self._given_back = given_back
        self._ahead: deque[dict[str, torch.Tensor]] = deque(maxlen=ahead)
        self._number = trainer.passes_begun
        self._drawn = trainer.members.drawn if trainer.members is not None else None

    def __next__(self) -> dict[str, torch.Tensor]:
        """Give the next batch, or single sample."""
        try:
            if self._count == self._limit or (self._count and self._trainer.closed):  # by the loop itself
                raise StopIteration
            self._trainer.in_turn.take(self._number)
            tensors = self._given_back.popleft() if self._given_back else self._draw()
        except StopIteration:  # who fetches ahead uses all now
            self._ahead.clear()
            raise
        self._count += 1
        if self._ahead.maxlen:
            self._ahead.append(tensors)
        return tensors

    def _draw(self) -> dict[str, torch.Tensor]:
        trainer, pages = self._trainer, self._pages
        trainer.shared.begin_draw()
        page = None if pages is None else trainer.draw_page(pages.size)
        tensors = self._gathered() if pages is None or page is None else pages.at(*page)
        if trainer.apart is not None:
            trainer.samples += tensors["step"].numel()
        if self._drawn is not None:
            self._drawn.take(tensors)
        return part_weights(tensors) if trainer.plan.weights else tensors

    def _gathered(self) -> dict[str, torch.Tensor]:
        memory = self._memory
        if isinstance(memory, BySize):
            size = self._trainer.draw_share()
            if not size:
                raise StopIteration
            memory = memory.of(size)
        return self._packed(memory) if isinstance(memory, PackedMemory) else self._copied(memory.take())

    def _packed(self, memory: PackedMemory) -> dict[str, torch.Tensor]:
        numbers = memory.numbers()
        if not self._trainer.draw_numbers(numbers.ctypes.data):
            raise StopIteration
        return self._copied(memory.take(numbers), shifted=memory.shifted, fill=memory.fill)

    def _copied(self, batch: Batch, **ragged: Any) -> dict[str, torch.Tensor]:
        if not self._trainer.draw(batch.pointers, batch.addresses[-4:], **ragged):
            raise StopIteration
        if self._constants is None:
            return batch.tensors
        return batch.tensors | self._constants.of_batch(batch)

    def __del__(self) -> None:
        """Note that the script has left its loop, early or at the end."""
        if not self._trainer.closed:
            self._given_back.extend(self._ahead)
        self._trainer.end_pass()


class Refused(Iterator[dict[str, torch.Tensor]]):
    """A pass that gives nothing: its first batch raises the error."""

    def __init__(self, error: StreamError) -> None:
        self._error = error

    def __next__(self) -> dict[str, torch.Tensor]:
        """Raise the error."""
        raise self._error
