"""The plan's section on the buffers of the trainers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mpidata.sizes import parse_size

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["BufferSection", "buffer_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BufferSection:
    """The buffers; `repeats` is 0 if there is no budget of draws.

    `capacity` counts samples (for windows, steps), or bytes with `capacity_in_bytes`, which is only for samples that
    differ in size.
    """

    policy: str
    capacity: int
    capacity_in_bytes: int = 0
    watermark: int
    tail: str
    repeats: float = 0.0
    pinned: int = 0


def buffer_of(job: Job) -> BufferSection:
    """Plan the buffers of a job."""
    buffer = job.buffer
    steps = buffer.holds(job.fields)
    size = parse_size(buffer.capacity) if isinstance(buffer.capacity, str) else None
    return BufferSection(
        policy=buffer.policy,
        capacity=size or 0 if steps is None else steps,
        capacity_in_bytes=int(steps is None),
        watermark=buffer.watermark,
        tail=buffer.tail,
        repeats=buffer.repeats or 0.0,
        pinned=int(buffer.pinned),
    )
