"""Distribution of a checkpoint's samples if the number of trainers has changed."""

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
    """Return which of the plan's trainers continues with each sample of each file.

    A sample belongs to the trainer to which it would be sent now. Earlier draws leave some trainers with more samples
    than others, but all draw the same number of batches, so trainers with too many give some that were never drawn to
    others. Not in an elastic job: there the step determines the trainer, so that the sample comes again if that dies.

    Parameters
    ----------
    plan : Plan
        Of the job that is resumed.
    files : sequence of TrainerFile
        All files of the checkpoint.
    undrawn : sequence of ndarray of int64
        For each file, the rows of the samples for training that were never drawn.

    Returns
    -------
    list of ndarray of int64
        For each file, the trainer of each row.
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
    """Count by trainer the samples received from incomplete simulations: the fewer there are, the more will come."""
    ledgers = [file.ledger for file in files]
    going_on = complete_steps(ledgers) < 0
    going_on[plan.simulations :] = False
    counts = np.zeros(plan.trainers, np.int64)
    for number, ledger in enumerate(ledgers):
        steps = received_steps(ledger, number, len(files), going_on, plan.samples_run, files[number].head.by_step)
        counts += np.bincount(trainer_of(plan, *steps), minlength=plan.trainers)
    return counts


def _shares(samples: int, received: _Numbers) -> _Numbers:
    """Divide samples so that each share exceeds the trainer's received samples by the same number, or is empty."""
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
