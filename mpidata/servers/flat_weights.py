"""The concatenated weights of a model, and their even division among the servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

__all__ = ["Kind", "Stretch", "kinds_of", "size_of", "stretches"]


class Kind(NamedTuple):
    """All weights of one dtype: its name in torch, and how many there are."""

    name: str
    size: int

    @property
    def dtype(self) -> torch.dtype:
        """The dtype itself."""
        dtype: torch.dtype = getattr(torch, self.name)
        return dtype


class Stretch(NamedTuple):
    """A server's weights of one dtype: `first` to `last` of all, and their offset in the bytes of its part."""

    kind: Kind
    first: int
    last: int
    at: int

    def of(self, part: torch.Tensor) -> torch.Tensor:
        """Return a view of them in the part, which is uint8."""
        count = self.last - self.first
        return part[self.at : self.at + count * self.kind.dtype.itemsize].view(self.kind.dtype)


def kinds_of(weights: Sequence[torch.Tensor]) -> list[Kind]:
    """Return the dtypes of some weights, the widest first, so that each is aligned."""
    counts: dict[torch.dtype, int] = {}
    for weight in weights:
        counts[weight.dtype] = counts.get(weight.dtype, 0) + weight.numel()
    dtypes = sorted(counts, key=lambda dtype: (-dtype.itemsize, str(dtype)))
    return [Kind(str(dtype).removeprefix("torch."), counts[dtype]) for dtype in dtypes]


def stretches(kinds: Sequence[Kind], servers: int) -> list[list[Stretch]]:
    """Divide the weights of each dtype among the servers as evenly as possible."""
    parts = []
    for server in range(servers):
        part, at = [], 0
        for kind in kinds:
            first, last = kind.size * server // servers, kind.size * (server + 1) // servers
            part.append(Stretch(kind, first, last, at))
            at += (last - first) * kind.dtype.itemsize
        parts.append(part)
    return parts


def size_of(part: Sequence[Stretch]) -> int:
    """Return the number of bytes of a server's part."""
    return sum((stretch.last - stretch.first) * stretch.kind.dtype.itemsize for stretch in part)
