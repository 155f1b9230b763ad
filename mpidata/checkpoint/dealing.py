"""Which trainer goes on with which samples of a checkpoint of another number of trainers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpidata.checkpoint.ledgers import complete_steps, received_steps, trainer_of
from mpidata.checkpoint.trainer_file import TrainerFile
from mpidata.run.plan import Plan

__all__ = ["trainers_for"]

_Numbers = NDArray[np.int64]


def trainers_for(plan: Plan, files: Sequence[TrainerFile], undrawn: Sequence[_Numbers]) -> list[_Numbers]:
    """Tell for each sample of each file which of the plan's trainers goes on with it.

    Each is of the trainer to which it would come today. But what was drawn before leaves some trainers more than
    others, and all draw as many batches: trainers with too many samples give some of those never drawn to others. Not
    in an elastic job: there all know by the step which trainer has a sample, so that it comes again when that one dies.

    Parameters
    ----------
    plan : Plan
        Of the job that goes on.
    files : sequence of TrainerFile
        All files of the checkpoint.
    undrawn : sequence of ndarray of int64
        Of each file the rows of the samples that are trained on and were never drawn.

    Returns
    -------
    list of ndarray of int64
        For each file, of each row.
    """
    dealt = [trainer_of(plan, file.simulation, file.step) for file in files]
    if plan.trainers_at_least:
        return dealt
    held = np.concatenate([of[rows] for of, rows in zip(dealt, undrawn, strict=True)])
    wanted = _shares(len(held), _received(plan, files))
    too_many = np.bincount(held, minlength=plan.trainers) - wanted
    takers = np.repeat(np.arange(plan.trainers), np.maximum(0, -too_many))
    for of, rows in zip(dealt, undrawn, strict=True):
        for trainer in np.flatnonzero(too_many > 0):
            given = rows[of[rows] == trainer][: too_many[trainer]]
            of[given], takers = takers[: len(given)], takers[len(given) :]
            too_many[trainer] -= len(given)
    return dealt


def _received(plan: Plan, files: Sequence[TrainerFile]) -> _Numbers:
    """Count by trainer the samples that have come of simulations which are not complete: the less, the more will."""
    ledgers = [file.ledger for file in files]
    going_on = complete_steps(ledgers) < 0
    going_on[plan.simulations :] = False
    counts = np.zeros(plan.trainers, np.int64)
    for number, ledger in enumerate(ledgers):
        steps = received_steps(ledger, number, len(files), going_on, plan.samples_run, files[number].head.by_step)
        counts += np.bincount(trainer_of(plan, *steps), minlength=plan.trainers)
    return counts


def _shares(samples: int, received: _Numbers) -> _Numbers:
    """Share samples so that each trainer has as many more than it has received as any other, or none."""
    order = np.argsort(received, kind="stable")[::-1]  # those with the most keep the most
    for least in range(len(order)):
        among = order[: len(order) - least]
        more, rest = divmod(samples - int(received[among].sum()), len(among))
        shares = received[among] + more + (np.arange(len(among)) < rest)
        if shares.min() >= 0:
            break
    wanted = np.zeros(len(received), np.int64)
    wanted[among] = shares
    return wanted
