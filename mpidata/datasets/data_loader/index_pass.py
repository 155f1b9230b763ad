"""A pass over a DataLoader's indices, for callers that read samples themselves, such as skip_first_batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.utils.data import BatchSampler

from mpidata.datasets.epochs.iteration import Iteration, Ready

__all__ = ["IndexPass", "PassBatches"]


class IndexPass(Iteration):
    """The batches of indices of one epoch; counts as a pass over the DataLoader.

    Parameters
    ----------
    batches : iterator of (int, object)
        Number of each batch in the epoch, and its indices.
    rest
        As of `Iteration`.
    """

    def __init__(self, batches: Iterator[tuple[int, Any]], *rest: Any) -> None:
        super().__init__(*rest)
        warnings.warn(
            "The batch_sampler of this mpidata.DataLoader is used in another DataLoader, which reads the samples in "
            "this process, not on the loaders; accelerate.skip_first_batches does that. To resume in mid-epoch with "
            "the loaders, give the state_dict() of the mpidata.DataLoader to its load_state_dict, or the "
            "DataLoader to accelerator.register_for_checkpointing.",
            stacklevel=4,
        )
        self._batches = batches
        self._drawn = next(batches, None)

    def has_more(self) -> bool:
        """Whether the epoch has another batch."""
        return self._drawn is not None

    def wait(self) -> Ready:
        """Return the next batch of indices."""
        assert self._drawn is not None
        number, chosen = self._drawn
        self._drawn = next(self._batches, None)
        return number, len(chosen), lambda: chosen

    def ask(self) -> None:
        """Do nothing: no loader is involved."""


class PassBatches(BatchSampler):
    """The batch sampler that a DataLoader shows to others: each iteration is a pass.

    Parameters
    ----------
    sampler, batch_size, drop_last
        As of torch's.
    index_pass : callable, optional
        Starts the pass. Without it, this is torch's batch sampler; a framework may make one with another sampler.
    set_epoch : callable, optional
        Sets the epoch of the next pass; transformers calls it here if it skips batches.
    """

    def __init__(
        self,
        sampler: Iterable[Any],
        batch_size: int,
        drop_last: bool,
        index_pass: Callable[[], Iterator[list[Any]]] | None = None,
        set_epoch: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(sampler, batch_size, drop_last)
        self._index_pass = index_pass
        if set_epoch is not None:
            self.set_epoch = set_epoch

    def __iter__(self) -> Iterator[list[Any]]:
        """Start the next epoch."""
        return self._index_pass() if self._index_pass is not None else super().__iter__()
