"""The number of batches of a stream, if it follows from the number of its samples."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING

from mpidata.native.library import check
from mpidata.run.plan import Plan
from mpidata.run.plan.routing import own_count
from mpidata.trainer.replica.first_rank import FirstTrainer
from mpidata.trainer.shares.grouping import Grouping

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["expected_batches", "expected_of_stream"]


def expected_of_stream(trainer: Trainer, steps: int | None) -> int | None:
    """Return the number of batches of a trainer's whole stream, None if unknown; steps None: as simulations had."""
    restored, grouping = trainer.checkpoints.restored, trainer.grouping
    fewer = trainer.members is not None and trainer.members.generation > 0
    if grouping is None or fewer or (restored.batch and restored.trainers != trainer.plan.first_trainers):
        return None
    if steps is None and isinstance(trainer, FirstTrainer):
        steps = trainer.facts.steps  # as its mates know them
    elif steps is None:
        known = ctypes.c_int64()
        check(trainer.library, trainer.library.mpidata_trainer_steps(ctypes.byref(known)))
        steps = known.value
    return None if steps < 0 else expected_batches(trainer.plan, steps, grouping)


def expected_batches(plan: Plan, steps: int, grouping: Grouping) -> int | None:
    """Return the number of batches that each trainer draws if all simulations have `steps` steps and none fails.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    steps : int
        Number of steps of each simulation.
    grouping : Grouping
        How samples are grouped into batches.

    Returns
    -------
    int or None
        None for a reservoir, which draws samples more than once, unless `buffer.repeats` limits it.
    """
    if plan.policy == "reservoir":
        if not plan.repeats:
            return None
        draws = math.floor(
            plan.repeats * plan.simulations * _samples(plan, steps) * (1 + 1e-12)
        )  # as in c_api/src/stream/budget.c
        return draws // grouping.drawn_by_all(plan.first_trainers)
    shares = [_share(plan, steps, trainer) for trainer in range(plan.first_trainers)]
    if plan.tail == "repeat" and min(shares) > 0:
        return max(grouping.filled(share, i, plan.first_trainers, whole=False) for i, share in enumerate(shares))
    return min(grouping.filled(share, i, plan.first_trainers, whole=True) for i, share in enumerate(shares))


def _samples(plan: Plan, steps: int) -> int:
    """Return the number of samples of a simulation: the steps at which one begins."""
    return max(0, steps - plan.span)


def _share(plan: Plan, steps: int, trainer: int) -> int:
    """Return the number of samples of one trainer."""
    samples, run = _samples(plan, steps), plan.samples_run
    share = 0
    for first in range(plan.first_trainers):  # the simulations are assigned in turn
        simulations = len(range(first, plan.simulations, plan.first_trainers))
        share += simulations * own_count(plan.first_trainers, run, trainer, first, samples)
    return share
