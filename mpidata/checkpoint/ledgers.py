"""Evaluation of the ledgers of a checkpoint's trainers."""

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
_MOST_STEPS = 1 << 28  # of incomplete simulations, which are listed in memory


def samples_of(plan: Plan) -> tuple[int, int, int]:
    """Return the number of steps of a sample, their distance, and how many consecutive samples go to one trainer."""
    return plan.samples_window, plan.samples_stride, plan.samples_run


def trainer_of(plan: Plan, simulation: _Numbers, step: _Numbers) -> _Numbers:
    """Return the trainers of the samples that start at these steps, arrays of shape (n,)."""
    return trainers_of(plan.first_trainers, plan.samples_run, simulation, step)


def complete_steps(ledgers: Sequence[Ledger], by_step: int = 0, span: int = 0) -> _Numbers:
    """Find the simulations that are complete on all trainers.

    Parameters
    ----------
    ledgers : sequence of Ledger
        One of each trainer.
    by_step : int
        Whether the ledgers are of an elastic job: a trainer that had just joined may have written no ledger, and its
        samples are then missing.
    span : int
        Steps from the first one of a sample to its last.

    Returns
    -------
    ndarray, int64, shape (simulations,)
        Number of steps of each complete simulation, -1 for the others.
    """
    steps = ledgers[0]["steps"].astype(np.int64)
    complete = np.logical_and.reduce([(entry["complete"] != 0) & (entry["steps"] == steps) for entry in ledgers])
    ends = [np.cumsum(ledger["words"]) for ledger in ledgers]
    for simulation in np.flatnonzero(complete) if by_step else ():
        lacking = np.ones(max(0, int(steps[simulation]) - span), bool)
        for ledger, end in zip(ledgers, ends, strict=True):
            _cross_off(lacking, ledger, int(simulation), int(end[simulation]))
        complete[simulation] = not lacking.any()
    return np.where(complete, steps, -1)


def _cross_off(lacking: NDArray[np.bool_], ledger: Ledger, simulation: int, end: int) -> None:
    """Clear `lacking` for the samples of a simulation in a ledger by step, whose bits are the words before `end`."""
    lacking[: int(ledger["whole"][simulation])] = False
    bits = np.ascontiguousarray(ledger["bits"][end - int(ledger["words"][simulation]) : end], dtype="<u8")
    there = np.unpackbits(bits.view(np.uint8), bitorder="little")[: len(lacking)].astype(bool)
    lacking[: len(there)] &= ~there


def received_steps(
    ledger: Ledger, trainer: int, trainers: int, wanted: NDArray[np.bool_], run: int = 1, by_step: int = 0
) -> tuple[_Numbers, _Numbers]:
    """List the steps that a ledger holds: those of the samples, or at which windows start.

    Parameters
    ----------
    ledger : Ledger
        Of trainer number `trainer` of `trainers`.
    wanted : ndarray, bool, shape (simulations,)
        Simulations to list.
    run : int
        Number of consecutive samples that go to one trainer.
    by_step : int
        Whether the ledger is of an elastic job: it also holds steps that others have trained on.

    Returns
    -------
    simulation, step : ndarray, int64, shape (number of steps,)
        The steps, by simulation.
    """
    if by_step:  # like the ledger of a single trainer
        trainer, trainers, run = 0, 1, 1
    simulations: list[_Numbers] = []
    steps: list[_Numbers] = []
    if int(ledger["whole"][wanted].sum()) // trainers > _MOST_STEPS:
        raise StreamError(
            "Cannot resume from the checkpoint: a trainer's ledger holds an impossible number of steps. Remove the "
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
