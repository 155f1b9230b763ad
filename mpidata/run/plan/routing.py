"""Which trainer receives which samples, computed by libmpidata without MPI."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mpidata.native.loading import load_carried

__all__ = ["own_count", "own_steps", "trainers_of"]

_Numbers = NDArray[np.int64]


def trainers_of(trainers: int, run: int, simulation: _Numbers, step: _Numbers) -> _Numbers:
    """Return the trainer of each sample.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    run : int
        Number of consecutive samples that belong to one trainer, `Plan.samples_run`.
    simulation, step : ndarray of int64, shape (n,)
        Of each sample; `step` is its first one, not negative.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    simulation, step = (np.ascontiguousarray(numbers, np.int64) for numbers in (simulation, step))
    found = np.empty(len(step), np.int64)
    call = load_carried().mpidata_routing_trainers
    call(trainers, run, simulation.ctypes.data, step.ctypes.data, found.ctypes.data, len(step))
    return found


def own_count(trainers: int, run: int, trainer: int, simulation: int, steps: int) -> int:
    """Count the samples of one trainer that begin in the first `steps` steps of a simulation."""
    count: int = load_carried().mpidata_routing_own(trainers, run, trainer, simulation, steps)
    return count


def own_steps(trainers: int, run: int, trainer: int, simulation: int, numbers: _Numbers) -> _Numbers:
    """Return the first steps of a trainer's samples of a simulation, by their numbers among these samples."""
    steps = np.array(numbers, np.int64)
    load_carried().mpidata_routing_steps(trainers, run, trainer, simulation, steps.ctypes.data, len(steps))
    return steps
