"""The notices to accelerate about a pass over a dataset: which batch is the last, and how many samples it has."""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["AcceleratePass"]


class AcceleratePass:
    """A pass over a loader after `accelerator.prepare`, announced as accelerate's own loaders do.

    Gradient accumulation then steps after the last batch, and `gather_for_metrics` drops its padding.

    Parameters
    ----------
    remainder : int
        Samples in the last batches of all trainers together, without the padding; 0 drops nothing.
    """

    def __init__(self, remainder: int) -> None:
        self._remainder = remainder
        self._state: Any = None

    def begin(self) -> None:
        """Make this the pass that accelerate consults; only the first call has an effect."""
        if self._state is None:
            self._state = _kind()()
            self._state.gradient_state = importlib.import_module("accelerate.state").GradientState()
            self._state.begin()
            self._state.remainder = self._remainder

    def last(self) -> None:
        """Report that the next batch is the last."""
        if self._state is not None:
            self._state.end_of_dataloader = True

    def end(self) -> None:
        """Make accelerate consult the previous pass again; only the first call has an effect."""
        if self._state is not None:
            self._state.end()


@functools.cache
def _kind() -> type[Any]:
    """Derive from accelerate's mixin; imported only here, because accelerate may not be installed."""
    mixin = importlib.import_module("accelerate.data_loader").DataLoaderStateMixin
    return type("PassOfMpidata", (mixin,), {})
