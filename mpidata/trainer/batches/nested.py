"""Memory of nested batches: torch's nested tensors over packed values."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import torch

from mpidata.errors import StreamError
from mpidata.run.plan import Plan
from mpidata.trainer.batches.fixed_shapes import Batch
from mpidata.trainer.batches.packed import PackedMemory

__all__ = ["NestedMemory"]


class NestedMemory(PackedMemory):
    """Makes the tensors of nested batches.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    count : int
        Samples in a batch.
    gathers, pinned
        As in PackedMemory.

    Raises
    ------
    StreamError
        The samples are windows, or torch is too old.
    """

    shifted = False

    def __init__(
        self, plan: Plan, count: int | None, *, gathers: Collection[str] | None = None, pinned: bool = False
    ) -> None:
        if plan.samples_window > 1:
            raise StreamError(
                f"ragged='nested' does not support samples.window, {plan.samples_window} in the job file: a nested "
                "tensor has one length for each sample, not one for each step. Use 'packed' or 'padded'."
            )
        if not hasattr(torch.nested, "nested_tensor_from_jagged"):
            raise StreamError(
                f"ragged='nested' needs torch 2.4 or newer, but torch is {torch.__version__}. Install a newer one, or "
                "use 'packed' or 'padded'."
            )
        super().__init__(plan, count, gathers=gathers, pinned=pinned)

    def take(self, numbers: npt.NDArray[np.int64]) -> Batch:
        """Return memory for a batch, as in PackedMemory; fields of one length share their offsets."""
        batch = super().take(numbers)
        tensors = dict(batch.tensors)
        offsets = {length.name: tensors.pop(f"{length.name}_offsets") for length in self._plan.lengths}
        for field in self._fields:
            if field.length:
                tensors[field.name] = torch.nested.nested_tensor_from_jagged(
                    tensors[field.name], offsets[field.length], jagged_dim=field.shape.index(field.length) + 1
                )
        return dataclasses.replace(batch, tensors=tensors)
