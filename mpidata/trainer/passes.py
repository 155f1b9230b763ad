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

__all__ = ["OnItsWay", "Pass", "Refused"]

_Share: TypeAlias = "tuple[int, int] | None"


class OnItsWay(NamedTuple):
    """What is known of a batch that is copied to a device.

    Attributes
    ----------
    when_had : callable
        To be called when the loop gets it. Refers to no pass, as another one may give the batch out.
    constants : torch.Tensor or None
        Holds its constants.
    """

    when_had: Callable[[], object]
    constants: torch.Tensor | None


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
    prefetcher : Prefetcher, optional
        Of the dataset, if its batches go to a device.
    """

    def __init__(
        self,
        trainer: Trainer,
        memory: Memory,
        limit: int | None,
        constants: DrawnConstants | None,
        given_back: deque[dict[str, torch.Tensor]],
        ahead: int,
        prefetcher: Prefetcher[OnItsWay] | None = None,
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
        """Give the next batch, or single sample."""
        try:
            if self._count == self._limit or (self._count and self._trainer.closed):  # by the loop itself
                raise StopIteration
            self._trainer.in_turn.take(self._number)
            tensors = self._given_back.popleft() if self._given_back else self._next()
        except StopIteration:  # who fetches ahead uses all now
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

    def _fetch(self) -> Fetched[OnItsWay]:
        tensors = self._draw()
        return OnItsWay(_counted, self._holding_constants(tensors)), lambda: tensors

    def _fetch_ahead(self) -> Fetched[OnItsWay] | None:
        try:
            tensors, share = self._take(ahead=True)
        except StopIteration:
            return None
        count = functools.partial(_count, self._trainer, tensors["step"].numel(), share, ahead=True)
        return OnItsWay(count, self._holding_constants(tensors)), lambda: tensors

    def _holding_constants(self, tensors: dict[str, torch.Tensor]) -> torch.Tensor | None:
        return None if self._constants is None else tensors["simulation"]

    def _draw(self) -> dict[str, torch.Tensor]:
        tensors, share = self._take(ahead=False)
        _count(self._trainer, tensors["step"].numel(), share, ahead=False)
        if self._drawn is not None:
            self._drawn.take(tensors)
        return tensors

    def _take(self, ahead: bool) -> tuple[dict[str, torch.Tensor], _Share]:
        """Draw a batch; also returns its share, if all trainers draw it together. StopIteration: there is none."""
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
    """Do nothing, as the batch was counted when it was drawn."""


def _let_go(_: object) -> None:
    """Do nothing; a finalizer keeps what it is to be called with."""


class Refused(Iterator[dict[str, torch.Tensor]]):
    """A pass that gives nothing: its first batch raises the error."""

    def __init__(self, error: StreamError) -> None:
        self._error = error

    def __next__(self) -> dict[str, torch.Tensor]:
        """Raise the error."""
        raise self._error
