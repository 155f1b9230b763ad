"""Indices at which loaders die again and again."""

from __future__ import annotations

from typing import Any

from mpidata.errors import StreamError
from mpidata.loading.batch_messages import building_text, item_text

__all__ = ["LeftOut"]


class LeftOut:
    """Counts losses by what the loader was at, and leaves an index out of batches after its last try.

    Parameters
    ----------
    dataset : int
        Number of the dataset.
    retries : int
        How often an index is tried again.

    Notes
    -----
    How many may be left out is for the scheduler to say, which counts the losses, too, and ends the job.
    """

    def __init__(self, dataset: int, retries: int) -> None:
        self._dataset, self._retries = dataset, retries
        self._losses: dict[str, int] = {}
        self._texts: set[str] = set()

    def lose(self, at: str) -> None:
        """Count a lost loader; raises StreamError where building the dataset costs one after the other."""
        if not at:  # it is not known what the loader was at
            return
        self._losses[at] = self._losses.get(at, 0) + 1
        if self._losses[at] <= self._retries:
            return
        if at == building_text(self._dataset):
            raise StreamError(
                f"{self._losses[at]} loaders have died while they built this DataLoader's dataset. Look for the reason "
                "in their logs."
            )
        self._texts.add(at)

    def without(self, indices: Any) -> Any:
        """Take what is left out from the indices of a batch; raises StreamError where nothing remains."""
        if not self._texts:
            return indices
        single = not isinstance(indices, (list, tuple))
        kept = [i for i in ([indices] if single else indices) if item_text(self._dataset, i) not in self._texts]
        if not kept:
            raise StreamError(
                f"Nothing remains of a batch: loaders died again and again at index {indices!r:.100}, which is left "
                "out. Let the dataset give something else for it."
            )
        return indices if single else kept
