"""What the ledgers of a checkpoint's trainers say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.run.plan import Plan
from mpidata.run.plan.routing import own_count, own_steps, trainers_of

__all__ = ["Ledger", "complete_steps", "received_steps", "samples_of", "trainer_of"]

Ledger = Mapping[str, NDArray[Any]]
"""Arrays of `mpidata_ledger_export` by name."""

_Numbers = NDArray[np.int64]
_MOST_STEPS = 1 << 28  # of simulations that go on; they are listed in memory


def samples_of(plan: Plan) -> tuple[int, int, int]:
    """Give the steps of a sample, how far apart they are, and how many that begin in a row are of one trainer."""
    return plan.samples_window, plan.samples_stride, plan.samples_run


def trainer_of(plan: Plan, simulation: _Numbers, step: _Numbers) -> _Numbers:
    """Tell of which trainers the samples are that begin at these steps, arrays of shape (n,)."""
    return trainers_of(plan.first_trainers, plan.samples_run, simulation, step)


def complete_steps(ledgers: Sequence[Ledger]) -> _Numbers:
    """Find the simulations that are complete on all trainers.

    Parameters
    ----------
    ledgers : sequence of Ledger
        One of each trainer.

    Returns
    -------
    ndarray, int64, shape (simulations,)
        Number of steps of each complete simulation, -1 for the others.
    """
    steps = ledgers[0]["steps"].astype(np.int64)
    complete = np.logical_and.reduce([(entry["complete"] != 0) & (entry["steps"] == steps) for entry in ledgers])
    return np.where(complete, steps, -1)


def received_steps(
    ledger: Ledger, trainer: int, trainers: int, wanted: NDArray[np.bool_], run: int = 1, by_step: int = 0
) -> tuple[_Numbers, _Numbers]:
    """List the steps that a ledger holds: those of the samples, or at which windows begin.

    Parameters
    ----------
    ledger : Ledger
        Of trainer number `trainer` of `trainers`.
    wanted : ndarray, bool, shape (simulations,)
        Simulations to list.
    run : int
        Samples that begin one after the other and are of one trainer.
    by_step : int
        Whether it is of an elastic job: it also holds steps that others have trained on.

    Returns
    -------
    simulation, step : ndarray, int64, shape (number of steps,)
        The steps, by simulation.
    """
    if by_step:  # as that of a single trainer
        trainer, trainers, run = 0, 1, 1
    simulations: list[_Numbers] = []
    steps: list[_Numbers] = []
    if int(ledger["whole"][wanted].sum()) // trainers > _MOST_STEPS:
        raise StreamError(
            "The checkpoint cannot be continued: the ledger of a trainer holds more steps than can be. Remove the "
            "checkpoint's folder, and resume from the one before."
        )
    ends = np.cumsum(ledger["words"])
    bits = np.ascontiguousarray(ledger["bits"], dtype="<u8")
    for simulation in np.flatnonzero(wanted & ((ledger["words"] > 0) | (ledger["whole"] > 0))):
        end = ends[simulation]
        words = bits[end - ledger["words"][simulation] : end]
        below = np.arange(own_count(trainers, run, trainer, int(simulation), int(ledger["whole"][simulation])))
        own = np.concatenate([below, np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))])
        steps.append(own_steps(trainers, run, trainer, int(simulation), own))
        simulations.append(np.full(len(own), simulation, np.int64))
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *simulations]), np.concatenate([nothing, *steps])
