"""A batch in a message: a description, and the memory of its tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, round_up
from mpidata.trainer.replica.link import Bytes, Incoming

__all__ = ["Described", "TensorMemory", "describe"]


class Described(NamedTuple):
    """The description of a batch.

    Attributes
    ----------
    plain : tuple of (str, tuple of int)
        Dtype and shape of each tensor whose memory is sent.
    named : tuple of (str, tuple)
        By name: the number of the tensor; for a nested one the numbers of its values and offsets, and its ragged
        dimension.
    """

    plain: tuple[tuple[str, tuple[int, ...]], ...]
    named: tuple[tuple[str, tuple[int, ...]], ...]


def describe(tensors: Mapping[str, torch.Tensor]) -> tuple[Described, list[Bytes]]:
    """Describe tensors in CPU memory, and return views of their memory, or copies if it is not contiguous."""
    plain: list[torch.Tensor] = []
    numbers: dict[int, int] = {}
    kept: list[torch.Tensor] = []  # so that no two have the same id

    def add(tensor: torch.Tensor) -> int:
        if id(tensor) not in numbers:
            numbers[id(tensor)] = len(plain)
            kept.append(tensor)
            plain.append(tensor.contiguous())
        return numbers[id(tensor)]

    named: list[tuple[str, tuple[int, ...]]] = []
    for name, tensor in tensors.items():
        if tensor.is_nested:  # nested tensors of one length share their offsets
            jagged: Any = tensor
            named.append((name, (add(jagged.values()), add(jagged.offsets()), int(jagged._ragged_idx))))
        else:
            named.append((name, (add(tensor),)))
    kinds = tuple((str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in plain)
    return Described(kinds, tuple(named)), [_bytes(tensor) for tensor in plain]


class TensorMemory:
    """Receives tensors, in memory that is reused when nothing refers to it.

    Parameters
    ----------
    pinned : bool
        Use page-locked memory from torch's own pool.
    """

    def __init__(self, pinned: bool = False) -> None:
        self._pinned = pinned
        self._pool = MemoryPool()

    def receive(self, described: Sequence[Described], incoming: Incoming) -> list[dict[str, torch.Tensor]]:
        """Receive the memory of all batches, and return the tensors of each, in a block of their own; sleeps."""
        plain = [self._take(one) for one in described]
        incoming.fill([_bytes(tensor) for of_one in plain for tensor in of_one])
        return [self._named(*pair) for pair in zip(described, plain, strict=True)]

    @staticmethod
    def _named(described: Described, plain: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        tensors: dict[str, torch.Tensor] = {}
        for name, parts in described.named:
            if len(parts) == 1:
                tensors[name] = plain[parts[0]]
                continue
            values, offsets, dimension = parts
            tensors[name] = torch.nested.nested_tensor_from_jagged(plain[values], plain[offsets], jagged_dim=dimension)
        return tensors

    def _take(self, described: Described) -> list[torch.Tensor]:
        kinds = [(getattr(torch, dtype), shape) for dtype, shape in described.plain]
        if self._pinned:
            return [torch.empty(shape, dtype=dtype, device="cpu", pin_memory=True) for dtype, shape in kinds]
        sizes = [round_up(math.prod(shape) * dtype.itemsize, ALIGNMENT) for dtype, shape in kinds]
        total = sum(sizes)
        memory = torch.from_numpy(self._pool.take(max(1, total), total // 4 if total else 0))
        tensors, at = [], 0
        for (dtype, shape), size in zip(kinds, sizes, strict=True):
            count = math.prod(shape) * dtype.itemsize
            tensors.append(memory[at : at + count].view(dtype).view(shape))
            at += size
        return tensors


def _bytes(tensor: torch.Tensor) -> Bytes:
    """Return a view of a contiguous tensor's memory; with a single element it may have any strides."""
    if not tensor.numel():
        return np.empty(0, np.uint8)
    flat: Bytes = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8).numpy()
    return flat
