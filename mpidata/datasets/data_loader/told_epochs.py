"""What a script tells its dataset by `set_epoch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpidata.loading.definition import Epochs, epoch_takers

__all__ = ["ToldEpochs"]


class ToldEpochs:
    """What a script tells its dataset by `set_epoch`, which the loaders' copies are to hear, too.

    Parameters
    ----------
    dataset : object
        Gets an attribute `set_epoch` that notes the epoch and calls its own; pickled, it is its own.
    """

    def __init__(self, dataset: Any) -> None:
        self._noted = [_Noted.of(taker) for taker in epoch_takers(dataset)]

    def now(self) -> Epochs:
        """Give the epoch of each that takes some; empty where nothing was told."""
        epochs = tuple(None if noted is None else noted.epoch for noted in self._noted)
        return epochs if any(epoch is not None for epoch in epochs) else ()


class _Noted:
    """Stands for the method `set_epoch` of a dataset."""

    @classmethod
    def of(cls, dataset: Any) -> _Noted | None:
        """Stand for that of a dataset; None where it takes no attributes."""
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
