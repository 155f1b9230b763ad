"""The epochs that a script passes to its dataset by `set_epoch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpidata.loading.definition import Epochs, epoch_takers

__all__ = ["EpochSettings"]


class EpochSettings:
    """The epochs that a script passes to its dataset by `set_epoch`, for the copies on the loaders.

    Parameters
    ----------
    dataset : object
        Gets an attribute `set_epoch` that notes the epoch and calls the method; it is pickled as the method.
    """

    def __init__(self, dataset: Any) -> None:
        self._noted = [_Noted.of(taker) for taker in epoch_takers(dataset)]

    def now(self) -> Epochs:
        """Return the epoch of each dataset with `set_epoch`; empty if none was set."""
        epochs = tuple(None if noted is None else noted.epoch for noted in self._noted)
        return epochs if any(epoch is not None for epoch in epochs) else ()


class _Noted:
    """Replaces the method `set_epoch` of a dataset."""

    @classmethod
    def of(cls, dataset: Any) -> _Noted | None:
        """Replace the method of a dataset; None if the dataset cannot have attributes."""
        if isinstance(dataset.set_epoch, cls):
            return dataset.set_epoch
        noted = cls(dataset, dataset.set_epoch)
        try:
            dataset.set_epoch = noted
        except AttributeError:
            return None
        return noted

    def __init__(self, dataset: Any, method: Callable[[int], Any]) -> None:
        self._dataset, self._method = dataset, method
        self.epoch: int | None = None

    def __call__(self, epoch: int) -> Any:
        self.epoch = int(epoch)
        return self._method(epoch)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self._dataset, "set_epoch")
