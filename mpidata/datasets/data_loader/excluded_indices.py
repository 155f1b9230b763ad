"""Indices at which loaders die repeatedly."""

from __future__ import annotations

from typing import Any

from mpidata.errors import StreamError
from mpidata.loading.batch_messages import building_text, item_text

__all__ = ["ExcludedIndices"]


class ExcludedIndices:
    """Counts lost loaders by the work item at which they died, and omits an index from batches after its last retry.

    Parameters
    ----------
    dataset : int
        Number of the dataset.
    retries : int
        Number of further attempts at an index.

    Notes
    -----
    The scheduler also counts the losses, and ends the job if too many indices are omitted.
    """

    def __init__(self, dataset: int, retries: int) -> None:
        self._dataset, self._retries = dataset, retries
        self._losses: dict[str, int] = {}
        self._texts: set[str] = set()

    def lose(self, at: str) -> None:
        """Count a lost loader; raises StreamError if loaders die repeatedly while they build the dataset."""
        if not at:  # unknown what the loader was doing
            return
        self._losses[at] = self._losses.get(at, 0) + 1
        if self._losses[at] <= self._retries:
            return
        if at == building_text(self._dataset):
            raise StreamError(
                f"{self._losses[at]} loaders have died while they built this DataLoader's dataset. Their logs show the "
                "reason."
            )
        self._texts.add(at)

    def without(self, indices: Any) -> Any:
        """Return the indices of a batch without the omitted ones; raises StreamError if none remains."""
        if not self._texts:
            return indices
        single = not isinstance(indices, (list, tuple))
        kept = [i for i in ([indices] if single else indices) if item_text(self._dataset, i) not in self._texts]
        if not kept:
            raise StreamError(
                f"Nothing remains of a batch: loaders died repeatedly at index {indices!r:.100}, which is therefore "
                "omitted. Make the dataset return another sample for this index."
            )
        return indices if single else kept
