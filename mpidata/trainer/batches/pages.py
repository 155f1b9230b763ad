"""Batches that are handed out where they were received, without a copy in the memory of the CPU."""

from __future__ import annotations

from mpidata.run.plan import Plan
from mpidata.trainer.batches.choice import Memory
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.shares.grouping import BySize

__all__ = ["buffer_is_page_locked", "hands_out_pages"]


def buffer_is_page_locked(plan: Plan) -> bool:
    """Whether the buffer of the job's trainers is in page-locked memory, from which devices copy without staging."""
    return bool(plan.pinned)


def hands_out_pages(plan: Plan, memory: Memory, constants: DrawnConstants | None, *, on_device: bool) -> bool:
    """Whether batches may be pages of the buffer, which come back when no tensor refers to them any more.

    Parameters
    ----------
    plan : Plan
        Of the job.
    memory : BatchMemory, PackedMemory or BySize
        Into which batches are copied otherwise.
    constants : DrawnConstants or None
        Those of batches, in a job that has any.
    on_device : bool
        Batches are copied to a device: from pages only if these are page-locked, and hold no constants, which the batch
        on the device would let go.
    """
    if plan.policy != "fifo":
        return False
    if on_device:
        return constants is None and buffer_is_page_locked(plan)
    pinned = not isinstance(memory, BySize) and memory.pinned
    return not pinned and not (constants is not None and constants.views)
