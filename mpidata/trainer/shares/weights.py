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
    """Multiply gradients by a factor, in place; by 0 all become 0, also NaN."""
    if factor:
        gradients.mul_(factor)
    else:
        gradients.zero_()


def check_weight(weight: Any) -> float | None:
    """Return a weight as a float; raises StreamError if it is invalid."""
    if weight is None:
        return None
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise StreamError(
            f"mpidata.DistributedDataParallel: weight is {weight!r:.100}. Give a finite number of at least 0, such as "
            "the number of values of which the loss is the mean, or None for the number of samples drawn."
        )
    return number


class Weights:
    """Makes torch's DistributedDataParallel compute weighted means.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup
        Process group of the model.
    own : callable
        Returns, once for each mean, the weight of this trainer.
    """

    def __init__(self, group: dist.ProcessGroup, own: Callable[[], float]) -> None:
        self._group, self._own = group, own
        self._factor = 1.0

    def sum(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        """Sum a bucket of gradients over the trainers; torch asks for one after the other, starting with the first.

        `bucket` is a `torch.distributed.GradBucket`; the returned future completes with the sum.
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
