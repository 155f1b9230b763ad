"""What the scheduler writes to a checkpoint, and how it resumes from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpidata.checkpoint import path_of, read_scheduler, received
from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.run.logged_losses import TRAINER_CHANGES, read_losses
from mpidata.run.plan import Plan
from mpidata.scheduler.deaths.lost_groups import Losses
from mpidata.scheduler.figures.summary import Figures
from mpidata.scheduler.simulations import PENDING, RUNNING, Simulations

__all__ = ["restore", "state_of", "unfinished_tries"]


def state_of(simulations: Simulations, losses: Losses, figures: Figures, seconds: float) -> dict[str, Any]:
    """Return the scheduler's part of a checkpoint, for JSON: what does not follow from the trainers' ledgers."""
    return {
        "tries": {str(simulation): used for simulation, used in unfinished_tries(simulations).items()},
        "retries": list(losses.retries),
        "set_aside": list(losses.set_aside),
        "cancelled": simulations.cancelled,
        "lost_groups": losses.groups,
        "run_again": figures.run_again,
        **figures.changes(),
        "seconds": seconds,
        "first": dict(figures.first),
        "last": dict(figures.last),
        "losses": figures.losses.state(),
        # The list itself: a trainer's sentence arrives before its report that its part of this checkpoint is written.
        "record_stopped": figures.record_stopped,
    }


def unfinished_tries(simulations: Simulations) -> dict[int, int]:
    """Count the failed tries of simulations that are neither complete nor failed."""
    running = set(simulations.running.values())
    return {
        simulation: failed
        for simulation in range(simulations.count)
        if simulations.state(simulation) in (PENDING, RUNNING)
        and (failed := simulations.counted_tries(simulation) - (simulation in running))
    }


def restore(plan: Plan, simulations: Simulations, losses: Losses, figures: Figures) -> dict[str, int] | None:
    """Restore the plan's checkpoint, or start from the beginning without one, before anything is dispatched.

    A simulation is complete if the trainers' ledgers say so; one that is not runs again from its beginning, and the
    trainers drop the steps that they hold already. Losses after the checkpoint also count. What was set aside stays
    so: retrying it is up to the user. What was cancelled never runs again.

    Returns
    -------
    dict or None
        Numbers for the event `resume`; None if the plan has no checkpoint.

    Raises
    ------
    MpidataError
        The checkpoint cannot be read.
    """
    lost = read_losses(RunFolder(plan.run).events) if plan.attempt > 1 else {}
    if not plan.checkpoint:
        losses.keep(lost.get("set_aside", []))
        set_aside = [entry["simulation"] for entry in losses.set_aside]
        simulations.restore({}, {}, set_aside, lost.get("cancelled", []))
        return None
    folder: Path = path_of(RunFolder(plan.run).checkpoints, plan.checkpoint)
    count = plan.simulations + plan.validation
    state, steps = read_scheduler(folder), received(folder)
    losses_restored = figures.losses.restore(state.get("losses", {}), count)
    if not (losses_restored and _makes_sense(state, count) and len(steps) == count):
        raise MpidataError(
            f"The checkpoint {folder} is damaged or of another job. Remove its folder, and resume from the one before."
        )
    complete = {int(i): int(steps[i]) for i in (steps >= 0).nonzero()[0]}
    known = lost if any(lost.values()) else state
    losses.keep(**{key: known[key] for key in ("set_aside", "retries", "lost_groups") if key in known})
    figures.earlier = {key: known[key] for key in TRAINER_CHANGES if key in known}
    figures.run_again = known.get("run_again", 0)
    figures.resume()
    figures.before_s = state.get("seconds", 0.0)
    figures.first.update(state.get("first", {}))
    figures.last.update(state.get("last", {}))
    figures.record_stopped.extend(state.get("record_stopped", []))
    tries = {int(simulation): used for simulation, used in state.get("tries", {}).items()}
    cancelled = {*state.get("cancelled", []), *lost.get("cancelled", [])}
    simulations.restore(complete, tries, [entry["simulation"] for entry in losses.set_aside], sorted(cancelled))
    return {"checkpoint": plan.checkpoint, "attempt": plan.attempt, "complete": len(complete)}


def _makes_sense(state: dict[str, Any], count: int) -> bool:
    """Whether the scheduler's part of a checkpoint is as `state_of` returns it, for `count` simulations."""

    def is_simulation(value: object) -> bool:
        return type(value) is int and 0 <= value < count

    entries = (
        [*state.get("retries", []), *state.get("set_aside", [])] if _are(state, list, "retries", "set_aside") else [0]
    )
    if not all(isinstance(entry, dict) and is_simulation(entry.get("simulation")) for entry in entries):
        return False
    if not (_are(state, list, "cancelled") and all(map(is_simulation, state.get("cancelled", [])))):
        return False
    if not _are(state, dict, "tries", "first", "last") or not _are(state, list, "record_stopped"):
        return False
    tries = state.get("tries", {}).items()
    if not all(key.isdecimal() and is_simulation(int(key)) and type(used) is int and used >= 0 for key, used in tries):
        return False
    values = [*state.get("first", {}).values(), *state.get("last", {}).values()]
    said = all(isinstance(sentence, str) for sentence in state.get("record_stopped", []))
    if not said or not all(value is None or type(value) in (int, float) for value in values):
        return False
    trainers = [one for key in TRAINER_CHANGES for one in (state.get(key, []) if _are(state, list, key) else [None])]
    if not all(type(one) is int for one in (state.get("lost_groups", 0), state.get("run_again", 0), *trainers)):
        return False
    return type(state.get("seconds", 0.0)) in (int, float)


def _are(state: dict[str, Any], kind: type, *names: str) -> bool:
    return all(isinstance(state.get(name, kind()), kind) for name in names)
