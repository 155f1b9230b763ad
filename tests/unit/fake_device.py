"""A stand-in for a device whose streams work at the worst moment: late, when somebody waits for them, or at once.

Memory on the device is memory of the CPU with wrong values in it until it is copied to. What is freed is used again at
once, unless a stream has it kept. So there are wrong values where the training does not wait for a copy, where what is
copied from is changed before that is done, and where memory is used again before the training has read it.
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
    """As torch.OutOfMemoryError, which older ones do not have."""


def pretend_that_torch_pins(monkeypatch: Any) -> None:
    """Have a DataLoader of torch believe that its pin_memory=True can be done."""
    for name in ("cuda", "accelerator"):
        if hasattr(torch, name):
            monkeypatch.setattr(f"torch.{name}.is_available", lambda: True)


class Stream:
    """Work in order, done when `run_to` is called, or at once."""

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
    """As `mpidata.device.device.Device`.

    Parameters
    ----------
    mode : str
        Of MODES: when the stream of copies works. That of the training works late.
    pins : bool
        Whether `pin` copies, as from memory that is not page-locked.

    Attributes
    ----------
    host_waits : list of FakeEvent
        For which the host has waited.
    blocks : int
        Blocks of memory, one for each tensor, that were needed in all.
    """

    draws_page_locked = False  # there is no such memory without a device

    def __init__(self, mode: str = MODES[0], pins: bool = False) -> None:
        self.pins = pins
        self.copies, self.training = Stream(mode == MODES[1]), Stream(False)
        self.free: list[Bits] = []
        self.kept: dict[int, int] = {}  # by address: work of the training after which it may be used again; -1: held
        self.addresses: set[int] = set()
        self.host_waits: list[FakeEvent] = []
        self.fails_after: int | None = None  # so many copies
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
        # By addresses: whoever lets go of the source before this is done has it changed.
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
        """Begin a step of the training, which `take`s the batch as it is then; as a kernel does, it holds no memory."""
        where = {name: (one.data_ptr(), one.nbytes, one.dtype, one.shape) for name, one in batch.items()}
        assert all(map(self.has, batch.values()))
        self.training.give(lambda: take({name: _read(*of) for name, of in where.items()}))

    def finish(self) -> None:
        """Do all that was begun."""
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
