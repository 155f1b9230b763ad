"""A stand-in for a device whose streams work at the worst moment: late, when they are waited for, or at once.

Device memory is CPU memory with wrong values until it is copied to. Freed memory is reused at once, unless a stream has
it kept. So wrong values appear if the training does not wait for a copy, if the source of a copy changes before the
copy is done, and if memory is reused before the training has read it.
"""

from __future__ import annotations

import ctypes
import functools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mpidata.trainer.batches.pool import MemoryPool, lease

__all__ = ["MODES", "FakeDevice", "FakeEvent", "OutOfMemory", "pretend_that_torch_pins"]

POISON = 0xA5
MODES = ("copies late", "copies at once")
Bits = np.ndarray[Any, np.dtype[np.uint8]]


class OutOfMemory(RuntimeError):
    """Stands for torch.OutOfMemoryError, which older versions of torch lack."""


def pretend_that_torch_pins(monkeypatch: Any) -> None:
    """Make torch's DataLoader believe that pin_memory=True is possible."""
    for name in ("cuda", "accelerator"):
        if hasattr(torch, name):
            monkeypatch.setattr(f"torch.{name}.is_available", lambda: True)


class Stream:
    """Operations in order, done when `run_to` is called, or at once."""

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once
        self.work: deque[Callable[[], object]] = deque()
        self.done = self.given = 0

    def give(self, piece: Callable[[], object]) -> None:
        self.work.append(piece)
        self.given += 1
        if self.at_once:
            self.run_to(self.given)

    def run_to(self, number: int) -> None:
        while self.done < number:
            self.work.popleft()()
            self.done += 1


class FakeEvent:
    def __init__(self, stream: Stream, waits: list[FakeEvent]) -> None:
        self.stream, self.number, self.waits = stream, stream.given, waits

    def query(self) -> bool:
        return self.stream.done >= self.number

    def synchronize(self) -> None:
        if not self.query():
            self.waits.append(self)
        self.stream.run_to(self.number)


class FakeDevice:
    """A stand-in for `mpidata.device.device.Device`.

    Parameters
    ----------
    mode : str
        One of MODES: when the copy stream works. The training stream works late.
    pins : bool
        Whether `pin` copies, as for memory that is not page-locked.

    Attributes
    ----------
    host_waits : list of FakeEvent
        The events that the host has waited for.
    blocks : int
        The total number of memory blocks that were needed, one for each tensor.
    """

    draws_page_locked = False  # page-locked memory needs a device

    def __init__(self, mode: str = MODES[0], pins: bool = False) -> None:
        self.pins = pins
        self.copies, self.training = Stream(mode == MODES[1]), Stream(False)
        self.free: list[Bits] = []
        self.kept: dict[int, int] = {}  # by address: the training work after which the memory may be reused; -1: held
        self.addresses: set[int] = set()
        self.host_waits: list[FakeEvent] = []
        self.fails_after: int | None = None  # the number of copies that succeed
        self.staging, self.staged = MemoryPool(), 0

    @property
    def blocks(self) -> int:
        return len(self.addresses)

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self.pins:
            return tensor.contiguous()
        self.staged += 1
        block = self.staging.take(max(1, tensor.nbytes))

        def forget(block: Bits) -> None:
            self.staged -= 1
            block.fill(POISON)

        held = lease(block.ctypes.data, tensor.nbytes, functools.partial(forget, block))
        staged = torch.from_numpy(held).view(tensor.dtype).view(tensor.shape)
        return staged.copy_(tensor)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise OutOfMemory("on the stand-in")
        assert tensor.is_contiguous()
        block, size = self._take(max(1, tensor.nbytes)), tensor.nbytes
        held = lease(block.ctypes.data, size, functools.partial(self._free, block))
        # By addresses: if the source is released before the copy is done, the copy has wrong values.
        self.copies.give(functools.partial(ctypes.memmove, block.ctypes.data, tensor.data_ptr(), size))
        return torch.from_numpy(held).view(tensor.dtype).view(tensor.shape)

    def copied(self) -> FakeEvent:
        return FakeEvent(self.copies, self.host_waits)

    def wait_for(self, event: FakeEvent) -> None:
        self.training.give(lambda: event.stream.run_to(event.number))

    def keep(self, tensor: torch.Tensor) -> None:
        self.kept[tensor.data_ptr()] = -1

    def used(self) -> FakeEvent:
        return FakeEvent(self.training, self.host_waits)

    def step(self, batch: dict[str, torch.Tensor], take: Callable[[dict[str, torch.Tensor]], object]) -> None:
        """Start a step that `take`s the batch as it is when the step runs; like a kernel, it holds no memory."""
        where = {name: (one.data_ptr(), one.nbytes, one.dtype, one.shape) for name, one in batch.items()}
        assert all(map(self.has, batch.values()))
        self.training.give(lambda: take({name: _read(*of) for name, of in where.items()}))

    def finish(self) -> None:
        """Complete all work that was started."""
        self.training.run_to(self.training.given)
        self.copies.run_to(self.copies.given)

    def has(self, tensor: torch.Tensor) -> bool:
        return not tensor.numel() or tensor.data_ptr() in self.addresses

    def _take(self, size: int) -> Bits:
        fits = next((i for i, block in enumerate(self.free) if len(block) == size and self._is_free(block)), None)
        block = np.empty(size, np.uint8) if fits is None else self.free.pop(fits)
        self.addresses.add(block.ctypes.data)
        block.fill(POISON) if fits is None else self.copies.give(functools.partial(block.fill, POISON))
        return block

    def _free(self, block: Bits) -> None:
        if block.ctypes.data in self.kept:
            self.kept[block.ctypes.data] = self.training.given
        self.free.append(block)

    def _is_free(self, block: Bits) -> bool:
        if self.training.done < self.kept.get(block.ctypes.data, 0):
            return False
        self.kept.pop(block.ctypes.data, None)
        return True


def _read(address: int, size: int, dtype: torch.dtype, shape: torch.Size) -> torch.Tensor:
    return (
        torch.frombuffer(bytearray(ctypes.string_at(address, size) or b"\0" * 8), dtype=torch.uint8)[:size]
        .view(dtype)
        .view(shape)
    )
