"""Choose the layout of batches of samples with lengths of their own."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

from mpidata.errors import StreamError
from mpidata.run.plan import Plan
from mpidata.trainer.batches.fixed_shapes import BatchMemory
from mpidata.trainer.batches.nested import NestedMemory
from mpidata.trainer.batches.packed import PackedMemory
from mpidata.trainer.batches.padded import PaddedMemory
from mpidata.trainer.shares.grouping import BySize, Grouping

__all__ = ["KINDS", "Memory", "check_ragged", "make_memory"]

KINDS = ("packed", "padded", "nested")

Memory: TypeAlias = "BatchMemory | PackedMemory | BySize[BatchMemory | PackedMemory]"


def check_ragged(grouping: Grouping, ragged: Any, pad: Any) -> None:
    """Raise StreamError if these arguments of MPIStreamDataset cannot be combined."""
    if ragged not in KINDS:
        raise StreamError(f"ragged={ragged!r} is unknown. Use one of {', '.join(map(repr, KINDS))}.")
    if grouping.most is None and ragged != "packed":
        raise StreamError(
            f"ragged={ragged!r} needs batch_size: a single sample has its own lengths and is not joined with others. "
            "Give batch_size, or leave ragged out."
        )
    if pad is None:
        return
    if ragged != "padded":
        raise StreamError(f"pad={pad!r} has no effect with ragged={ragged!r}, which pads nothing. Leave pad out.")
    if isinstance(pad, bool) or not isinstance(pad, Real):
        raise StreamError(f"pad={pad!r} is not a number. Give a float, for example pad=0.0.")
    try:
        float(pad)
    except OverflowError:
        raise StreamError("pad is too large for a float. Give a smaller one.") from None


def make_memory(
    plan: Plan, grouping: Grouping, ragged: str, pad: float | None, *, gathers: Collection[str], pinned: bool
) -> Memory:
    """Make the memory of batches; arguments as in MPIStreamDataset. Raises StreamError if they do not fit the job."""
    make = partial(_make, plan, ragged=ragged, pad=pad, gathers=gathers, pinned=pinned)
    return make(grouping.batch_size) if grouping.total is None else BySize(make, grouping.largest(plan.first_trainers))


def _make(
    plan: Plan, batch_size: int | None, *, ragged: str, pad: float | None, gathers: Collection[str], pinned: bool
) -> BatchMemory | PackedMemory:
    if not plan.numbers and not gathers:
        return BatchMemory(plan.fields, len(plan.parameters), batch_size, window=plan.samples_window, pinned=pinned)
    if ragged == "padded":
        assert batch_size is not None
        return PaddedMemory(plan, batch_size, 0.0 if pad is None else float(pad), gathers=gathers, pinned=pinned)
    return (NestedMemory if ragged == "nested" else PackedMemory)(plan, batch_size, gathers=gathers, pinned=pinned)
