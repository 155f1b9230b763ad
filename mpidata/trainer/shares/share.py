"""The share of a trainer in batches that all trainers draw together, as the weight of its gradients."""

from __future__ import annotations

import warnings

__all__ = ["Share"]


class Share:
    """The share of this trainer in the batches of all, as the weight of its gradients: 1 if all shares are equal.

    Attributes
    ----------
    total : int or None
        Samples of all trainers in a batch; None if batches are not drawn together.
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
        """Note a batch of this many samples, drawn by this many trainers; warn if uneven batches are not weighted."""
        assert self.total is not None
        self._weight += samples * trainers / self.total
        self._batches += 1
        if self._batches == 2 and not self.weighed and self.is_uneven(trainers) and _averages():
            warnings.warn(
                f"The trainers' batches differ in size, because {trainers} trainers share {self.total} samples, but "
                "torch's DistributedDataParallel weights them equally. Use mpidata.DistributedDataParallel, or a "
                "global_batch_size that divides evenly among the trainers.",
                stacklevel=6,
            )

    def is_uneven(self, trainers: int) -> bool:
        """Whether batches differ in size if this number of trainers share them."""
        return self.total is not None and self.total % trainers > 0

    def take(self) -> float:
        """Return the weight of what was drawn since the last call, or the previous weight if nothing was."""
        if self._weight:
            self._before, self._weight = self._weight, 0.0
        return self._before


def _averages() -> bool:
    """Whether torch averages over several processes."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
