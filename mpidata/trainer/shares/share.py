"""What a trainer has drawn of batches that all trainers draw together, as a weight of its gradients."""

from __future__ import annotations

import warnings

__all__ = ["Share"]


class Share:
    """What this trainer has drawn of the batches of all, as a weight of its gradients: 1 where all draw as many.

    Attributes
    ----------
    total : int or None
        Samples of all trainers in a batch; None: batches are not drawn together.
    weighed : bool
        Whether the script averages with weights.

    Notes
    -----
    For the thread of the training script.
    """

    def __init__(self) -> None:
        self.total: int | None = None
        self.weighed = False
        self._weight, self._before = 0.0, 1.0
        self._batches = 0

    def took(self, samples: int, trainers: int) -> None:
        """Take in a batch of so many samples, of as many trainers; warns where nobody weighs what is unlike."""
        assert self.total is not None
        self._weight += samples * trainers / self.total
        self._batches += 1
        if self._batches == 2 and not self.weighed and self.is_uneven(trainers) and _averages():
            warnings.warn(
                f"The trainers' batches differ in size, as {trainers} trainers share {self.total} samples, and torch's "
                "DistributedDataParallel gives all the same weight. Use mpidata.DistributedDataParallel, or a "
                "global_batch_size that can be shared evenly.",
                stacklevel=6,
            )

    def is_uneven(self, trainers: int) -> bool:
        """Whether batches differ where so many trainers share them."""
        return self.total is not None and self.total % trainers > 0

    def take(self) -> float:
        """Give the weight of what was drawn since the last call, or that of before where nothing was."""
        if self._weight:
            self._before, self._weight = self._weight, 0.0
        return self._before


def _averages() -> bool:
    """Whether torch averages over several processes."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
