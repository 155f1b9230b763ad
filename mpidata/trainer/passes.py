"""One pass over the stream."""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import torch

from mpidata.device.prefetch import Fetched, Prefetcher
from mpidata.errors import StreamError
from mpidata.tensors import part_weights
from mpidata.trainer.batches.choice import Memory
from mpidata.trainer.batches.fixed_shapes import Batch, BatchMemory
from mpidata.trainer.batches.packed import PackedMemory
from mpidata.trainer.batches.pages import hands_out_pages
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.shares.grouping import BySize
from mpidata.trainer.trainer import Trainer

__all__ = ["BatchCopy", "Pass", "Refused"]

_Share: TypeAlias = "tuple[int, int] | None"


class BatchCopy(NamedTuple):
    """Information on a batch that is being copied to a device.

    Attributes
    ----------
    when_had : callable
        Call this when the loop gets the batch. Refers to no pass, because another one may return the batch.
    constants : torch.Tensor or None
        Keeps its constants alive.
    """

    when_had: Callable[[], object]
    constants: torch.Tensor | None


class Pass(Iterator[dict[str, torch.Tensor]]):
    """A pass. Holds no batch, so that its memory is returned when the user releases it.

    The exception is a framework that fetches ahead: the next pass starts with what it has not used.

    Parameters
    ----------
    trainer : Trainer
        The trainer that draws.
    memory : BatchMemory, PackedMemory or BySize
        Memory of the batches.
    limit : int or None
        Number of batches after which it ends; None: at the end of the stream.
    constants : DrawnConstants or None
        The constants of batches; None if the job has none.
    given_back : deque
        Batches that other passes over the same dataset have given back, for the next pass.
    ahead : int
        Number of batches, or single samples, that the caller fetches before it uses them.
    prefetcher : Prefetcher, optional
        The prefetcher of the dataset, if its batches go to a device.
    """

    def __init__(
        self,
        trainer: Trainer,
        memory: Memory,
        limit: int | None,
        constants: DrawnConstants | None,
        given_back: deque[dict[str, torch.Tensor]],
        ahead: int,
        prefetcher: Prefetcher[BatchCopy] | None = None,
    ) -> None:
        self._trainer = trainer
        self._constants = constants
        self._memory = memory
        self._prefetcher = prefetcher
        pages = hands_out_pages(trainer.plan, memory, constants, on_device=prefetcher is not None)
        self._pages = memory if isinstance(memory, BatchMemory) and pages else None
        self._limit = limit
        self._count = 0
        self._given_back = given_back
        self._ahead: deque[dict[str, torch.Tensor]] = deque(maxlen=ahead)
        self._number = trainer.passes_begun
        self._drawn = trainer.members.drawn if trainer.members is not None else None

    def __next__(self) -> dict[str, torch.Tensor]:
        """Return the next batch, or single sample."""
        try:
            if self._count == self._limit or (self._count and self._trainer.closed):  # closed by the loop itself
                raise StopIteration
            self._trainer.in_turn.take(self._number)
            tensors = self._given_back.popleft() if self._given_back else self._next()
        except StopIteration:  # a caller that fetches ahead now uses all
            self._ahead.clear()
            raise
        self._count += 1
        if self._ahead.maxlen:
            self._ahead.append(tensors)
        return tensors

    def _next(self) -> dict[str, torch.Tensor]:
        if self._prefetcher is None:
            return self._draw()
        (count, constants), give = self._prefetcher.next(self._fetch, self._fetch_ahead)
        count()
        batch: dict[str, torch.Tensor] = give()
        if constants is not None:
            weakref.finalize(batch["simulation"], _let_go, constants).atexit = False
        return batch

    def _fetch(self) -> Fetched[BatchCopy]:
        tensors = self._draw()
        return BatchCopy(_counted, self._holding_constants(tensors)), lambda: tensors

    def _fetch_ahead(self) -> Fetched[BatchCopy] | None:
        try:
            tensors, share = self._take(ahead=True)
        except StopIteration:
            return None
        count = functools.partial(_count, self._trainer, tensors["step"].numel(), share, ahead=True)
        return BatchCopy(count, self._holding_constants(tensors)), lambda: tensors

    def _holding_constants(self, tensors: dict[str, torch.Tensor]) -> torch.Tensor | None:
        return None if self._constants is None else tensors["simulation"]

    def _draw(self) -> dict[str, torch.Tensor]:
        tensors, share = self._take(ahead=False)
        _count(self._trainer, tensors["step"].numel(), share, ahead=False)
        if self._drawn is not None:
            self._drawn.take(tensors)
        return tensors

    def _take(self, ahead: bool) -> tuple[dict[str, torch.Tensor], _Share]:
        """Draw a batch; also return its share, if all trainers draw it together. Raises StopIteration at the end."""
        trainer, pages = self._trainer, self._pages
        trainer.shared.begin_draw()
        page = None if pages is None else trainer.draw_page(pages.size, ahead=ahead)
        tensors, share = (pages.at(*page), None) if pages is not None and page is not None else self._gathered(ahead)
        return part_weights(tensors) if trainer.plan.weights else tensors, share

    def _gathered(self, ahead: bool) -> tuple[dict[str, torch.Tensor], _Share]:
        memory, share = self._memory, None
        if isinstance(memory, BySize):
            share = self._trainer.draw_share(ahead=ahead)
            if share is None:
                raise StopIteration
            memory = memory.of(share[0])
        copied = self._packed(memory, ahead) if isinstance(memory, PackedMemory) else self._copied(memory.take(), ahead)
        return copied, share

    def _packed(self, memory: PackedMemory, ahead: bool) -> dict[str, torch.Tensor]:
        numbers = memory.numbers()
        if not self._trainer.draw_numbers(numbers.ctypes.data, ahead=ahead):
            raise StopIteration
        return self._copied(memory.take(numbers), ahead, shifted=memory.shifted, fill=memory.fill)

    def _copied(self, batch: Batch, ahead: bool, **ragged: Any) -> dict[str, torch.Tensor]:
        if not self._trainer.draw(batch.pointers, batch.addresses[-4:], ahead=ahead, **ragged):
            raise StopIteration
        if self._constants is None:
            return batch.tensors
        return batch.tensors | self._constants.of_batch(batch)

    def __del__(self) -> None:
        """Note that the script has left its loop, early or at the end."""
        if not self._trainer.closed:
            self._given_back.extend(self._ahead)
        self._trainer.end_pass()


def _count(trainer: Trainer, samples: int, share: _Share, *, ahead: bool) -> None:
    trainer.count_draw(share, ahead=ahead)
    if trainer.apart is not None:
        trainer.samples += samples


def _counted() -> None:
    """Do nothing, because the batch was counted when it was drawn."""


def _let_go(_: object) -> None:
    """Do nothing; a finalizer keeps its arguments alive."""


class Refused(Iterator[dict[str, torch.Tensor]]):
    """A pass without batches: the first one raises the error."""

    def __init__(self, error: StreamError) -> None:
        self._error = error

    def __next__(self) -> dict[str, torch.Tensor]:
        """Raise the error."""
        raise self._error
