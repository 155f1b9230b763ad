"""Batches that are passed to the script where they were received, without a copy in CPU memory."""

from __future__ import annotations

from mpidata.run.plan import Plan
from mpidata.trainer.batches.choice import Memory
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.shares.grouping import BySize

__all__ = ["buffer_is_page_locked", "hands_out_pages"]


def buffer_is_page_locked(plan: Plan) -> bool:
    """Whether the trainers' buffer is in page-locked memory, from which devices copy without staging."""
    return bool(plan.pinned)


def hands_out_pages(plan: Plan, memory: Memory, constants: DrawnConstants | None, *, on_device: bool) -> bool:
    """Whether batches may be pages of the buffer, which are returned when no tensor refers to them.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    memory : BatchMemory, PackedMemory or BySize
        The memory into which batches are otherwise copied.
    constants : DrawnConstants or None
        The constants of batches; None if the job has none.
    on_device : bool
        Whether batches are copied to a device: from pages only if these are page-locked and hold no constants, which a
        batch on the device would not keep alive.
    """
    if plan.policy != "fifo":
        return False
    if on_device:
        return constants is None and buffer_is_page_locked(plan)
    pinned = not isinstance(memory, BySize) and memory.pinned
    return not pinned and not (constants is not None and constants.views)
