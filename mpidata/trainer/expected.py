"""How many batches a stream will have, where that follows from the number of its samples."""

from __future__ import annotations

import math

from mpidata.run.plan import Plan
from mpidata.run.plan.routing import own_count

__all__ = ["expected_batches"]


def expected_batches(plan: Plan, steps: int, batch_size: int) -> int | None:
    """Count the batches that each trainer draws where all simulations have so many steps and none fails.

    Parameters
    ----------
    plan : Plan
        Of the job.
    steps : int
        Of each simulation.
    batch_size : int
        Samples in a batch.

    Returns
    -------
    int or None
        None for a reservoir, which gives samples more than once, unless `buffer.repeats` says how often.
    """
    if plan.policy == "reservoir":
        if not plan.repeats:
            return None
        draws = math.floor(
            plan.repeats * plan.simulations * _samples(plan, steps) * (1 + 1e-12)
        )  # as in c_api/src/stream/budget.c
        return draws // (plan.trainers * batch_size)
    shares = [_share(plan, steps, trainer) for trainer in range(plan.trainers)]
    if plan.tail == "repeat" and min(shares) > 0:
        return -(-max(shares) // batch_size)
    return min(shares) // batch_size


def _samples(plan: Plan, steps: int) -> int:
    """Count the samples of a simulation: the steps at which one begins."""
    return max(0, steps - plan.span)


def _share(plan: Plan, steps: int, trainer: int) -> int:
    """Count the samples of one trainer."""
    samples, run = _samples(plan, steps), plan.samples_run
    share = 0
    for first in range(plan.trainers):  # the simulations are dealt out in turn
        simulations = len(range(first, plan.simulations, plan.trainers))
        share += simulations * own_count(plan.trainers, run, trainer, first, samples)
    return share
