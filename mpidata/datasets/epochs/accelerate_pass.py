"""What accelerate is told of a pass over a dataset: when the last batch is given out, and how many samples that has."""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["AcceleratePass"]


class AcceleratePass:
    """A pass over a loader that `accelerator.prepare` was given, as accelerate's own loaders announce theirs.

    Gradient accumulation then steps after the last batch, and `gather_for_metrics` drops what the batch is filled with.

    Parameters
    ----------
    remainder : int
        Samples of the last batches of all trainers together, those that fill them left out; 0 drops nothing.
    """

    def __init__(self, remainder: int) -> None:
        self._remainder = remainder
        self._state: Any = None

    def begin(self) -> None:
        """Make this the pass that accelerate asks; only the first call counts."""
        if self._state is None:
            self._state = _kind()()
            self._state.gradient_state = importlib.import_module("accelerate.state").GradientState()
            self._state.begin()
            self._state.remainder = self._remainder

    def last(self) -> None:
        """Say that the batch given out next is the last."""
        if self._state is not None:
            self._state.end_of_dataloader = True

    def end(self) -> None:
        """Have accelerate ask the pass that was begun before; only the first call counts."""
        if self._state is not None:
            self._state.end()


@functools.cache
def _kind() -> type[Any]:
    """Derive from accelerate's mixin, which is imported only here, as accelerate may not be installed."""
    mixin = importlib.import_module("accelerate.data_loader").DataLoaderStateMixin
    return type("PassOfMpidata", (mixin,), {})
