"""How many batches a stream will have, where that follows from the number of its samples."""

from __future__ import annotations

import math

from mpidata.run.plan import Plan

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
        draws = math.floor(plan.repeats * plan.simulations * steps * (1 + 1e-12))  # as in c_api/src/stream/budget.c
        return draws // (plan.trainers * batch_size)
    shares = [_share(plan, steps, trainer) for trainer in range(plan.trainers)]
    if plan.tail == "repeat" and min(shares) > 0:
        return -(-max(shares) // batch_size)
    return min(shares) // batch_size


def _share(plan: Plan, steps: int, trainer: int) -> int:
    """Count the samples of one trainer: those of simulation i and step s with (i + s) mod trainers its number."""
    share = 0
    for first in range(plan.trainers):  # by (i mod trainers)
        simulations = len(range(first, plan.simulations, plan.trainers))
        share += simulations * len(range((trainer - first) % plan.trainers, steps, plan.trainers))
    return share
