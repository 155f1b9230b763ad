"""What a plan says of the buffers of the trainers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["BufferSection", "buffer_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BufferSection:
    """The buffers; `repeats` is 0 where there is no budget of draws."""

    policy: str
    capacity: int
    watermark: int
    tail: str
    repeats: float = 0.0


def buffer_of(job: Job) -> BufferSection:
    """Plan the buffers of a job."""
    buffer = job.buffer
    return BufferSection(
        policy=buffer.policy,
        capacity=buffer.capacity,
        watermark=buffer.watermark,
        tail=buffer.tail,
        repeats=buffer.repeats or 0.0,
    )
