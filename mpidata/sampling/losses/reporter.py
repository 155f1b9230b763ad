"""A trainer's losses by simulation, sent to the scheduler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.arrays import plain_array, plain_floats
from mpidata.errors import StreamError
from mpidata.native import constants
from mpidata.native.library import Library
from mpidata.sampling.losses.sums import Sums, by_simulation, of_samples

__all__ = ["LossReporter"]

_EVERY_S = 1.0
_MOST_WAITING = 1 << 16


class LossReporter:
    """Adds up the losses of batches, and sends them to the scheduler once a second.

    Parameters
    ----------
    library : Library
        The library, opened as a trainer.
    simulations : int
        Number of simulations of the job, including those for validation.
    clock : callable, optional
        Returns seconds.

    Notes
    -----
    For any thread; no method blocks.
    """

    def __init__(self, library: Library, simulations: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._library, self._simulations, self._clock = library, simulations, clock
        self._waiting: list[Sums] = []
        self._samples = 0
        self._next = clock() + _EVERY_S
        self._lock = threading.Lock()

    def take(self, batch: Mapping[str, Any], values: Any) -> int:
        """Add the losses of a batch, shape (B,); returns a status code. Raises StreamError if they do not match."""
        return self._add(of_samples(*self._checked(batch, values)))

    def _add(self, sums: Sums) -> int:
        with self._lock:
            self._waiting.append(sums)
            self._samples += len(sums)
            if self._samples > _MOST_WAITING:
                self._add_up()
            return self._tell(last=False) if self._clock() >= self._next else constants.SUCCESS

    def end(self) -> int:
        """Send the remaining losses; returns a status code."""
        with self._lock:
            return self._tell(last=True)

    def _tell(self, last: bool) -> int:
        if not self._waiting:
            return constants.SUCCESS
        self._next = self._clock() + _EVERY_S
        sums = self._add_up()
        status: int = self._library.mpidata_trainer_losses(sums.ctypes.data, len(sums), last)
        if status == constants.ERR_AGAIN:  # the scheduler is slow: send all later
            return constants.SUCCESS
        self._waiting = []
        return status

    def _add_up(self) -> Sums:
        sums = by_simulation(np.concatenate(self._waiting))
        self._waiting, self._samples = [sums], 0
        return sums

    def _checked(self, batch: Mapping[str, Any], values: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if not isinstance(batch, Mapping) or "simulation" not in batch:
            raise StreamError(
                "losses: the batch has no 'simulation', the ids of its samples' simulations. Pass the batch as the "
                "stream returned it."
            )
        try:
            ids = plain_array(batch["simulation"])
            if values is None:
                raise TypeError("None")
            if hasattr(values, "detach") and not values.is_complex():
                values = values.detach().double()  # also bfloat16
            losses = plain_floats(values)
        except (TypeError, ValueError, RuntimeError) as error:
            raise StreamError(
                f"losses: {type(values).__name__} is not an array of numbers: {str(error).rstrip('.')}. Give one of "
                "shape [B]."
            ) from None
        if ids.ndim != 1 or losses.shape != ids.shape:
            raise StreamError(
                f"losses: the values have shape {list(losses.shape)}, but the batch's 'simulation' has "
                f"{list(ids.shape)}. Give one loss for each sample, shape [B], before taking the mean."
            )
        if not np.issubdtype(ids.dtype, np.integer) or np.any((ids < 0) | (ids >= self._simulations)):
            raise StreamError(
                f"losses: the batch's 'simulation' holds other values than ids from 0 to {self._simulations - 1}. Pass "
                "the batch as the stream returned it."
            )
        return ids.astype(np.int64), losses
