"""Means of gradients in which each trainer has its own weight."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from mpidata.errors import StreamError

__all__ = ["Weights", "check_weight", "weigh"]


def weigh(gradients: torch.Tensor, factor: float) -> None:
    """Multiply gradients by a factor, in place; by 0 all become 0, NaN as well."""
    if factor:
        gradients.mul_(factor)
    else:
        gradients.zero_()


def check_weight(weight: Any) -> float | None:
    """Give a weight as a float; raises StreamError where it is none."""
    if weight is None:
        return None
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise StreamError(
            f"mpidata.DistributedDataParallel: weight is {weight!r:.100}. Give a finite number from 0, such as how "
            "many values the loss is the mean of, or None for the samples that were drawn."
        )
    return number


class Weights:
    """Has torch's DistributedDataParallel take a mean with weights.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        That of the model.
    own : callable
        Gives, once for each mean, the weight of this trainer.
    """

    def __init__(self, group: dist.ProcessGroup, own: Callable[[], float]) -> None:
        self._group, self._own = group, own
        self._factor = 1.0

    def sum(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        """Sum a bucket of gradients over the trainers, as torch asks for one after the other, from the first one on.

        `bucket` is a `torch.distributed.GradBucket`; the sum is there when what this gives has come.
        """
        gradients = bucket.buffer()
        if bucket.index() == 0:
            own = self._own()
            total = torch.tensor([own], dtype=torch.float64, device=gradients.device)
            dist.all_reduce(total, group=self._group)
            self._factor = own / (total.item() or 1.0)
        weigh(gradients, self._factor)
        summed = dist.all_reduce(gradients, group=self._group, async_op=True).get_future()
        came: torch.futures.Future[torch.Tensor] = summed.then(lambda future: future.value()[0])
        return came
