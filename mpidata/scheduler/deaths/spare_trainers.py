"""Spare trainers, which wait for a place, and how many trainers are to train."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mpidata.errors import MpidataError
from mpidata.loading.figures import RETIRES
from mpidata.native import constants
from mpidata.run.plan import Plan
from mpidata.scheduler.figures.summary import Figures

__all__ = ["SpareTrainers"]


class SpareTrainers:
    """Replaces trainers that have died by spares, and changes the number of trainers on request.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    order : callable
        Tells all trainers how many are to train, with an increasing order number; with 0, waiting ones leave.
    note : callable
        Writes an event.
    figures : Figures
        Receives the numbers of spares that have taken a place, and of trainers that no longer train.

    Notes
    -----
    Not thread-safe. The trainers that train decide by themselves, between two steps, who takes which place.
    """

    def __init__(
        self, plan: Plan, order: Callable[[int, int], object], note: Callable[..., Any], figures: Figures
    ) -> None:
        self._plan, self._order, self._note, self._figures = plan, order, note, figures
        self._waiting = set(range(plan.trainers - plan.trainer_spares, plan.trainers))
        self._joining: set[int] = set()  # with a share of the stream, but not yet in a checkpoint
        self._retired: set[int] = set()
        self._wanted = plan.trainers - plan.trainer_spares
        self._number = 0
        self._released = False

    def training(self, trainers: Iterable[int]) -> list[int]:
        """Return those of these trainers that train."""
        return [one for one in trainers if one not in self._waiting | self._retired]

    def waits(self, trainer: int) -> bool:
        """Whether a trainer has no place: it is a spare, or has retired."""
        return trainer in self._waiting | self._retired

    def not_retired(self, trainers: Iterable[int]) -> list[int]:
        """Return those of these trainers that have not retired: they train, or wait for a place."""
        return [one for one in trainers if one not in self._retired]

    def died(self, trainer: int, left: Iterable[int]) -> None:
        """Note that a trainer or spare has died, and which are left; a waiting one is to take the place."""
        self._waiting.discard(trainer)
        self._joining.discard(trainer)
        if self._waiting and len(self.training(left)) < self._wanted:
            self._tell(self._wanted)

    def joins(self, trainer: int, names: Iterable[str]) -> bool:
        """Process a trainer's report; returns whether it has a share of the stream from now on."""
        if constants.JOINS not in names or trainer not in self._waiting:
            return False
        self._waiting.discard(trainer)
        self._joining.add(trainer)
        return True

    def reported(self, trainer: int, names: Iterable[str]) -> int:
        """Process a trainer's report; returns 1 if it now trains, -1 if it no longer trains, else 0."""
        for name in names:
            if name == constants.TRAINS and trainer in self._waiting | self._joining:
                self._waiting.discard(trainer)
                self._joining.discard(trainer)
                self._figures.joined_trainers.append(trainer)
                self._note("trainer_joined", trainer=trainer)
                return 1
            if name == RETIRES and not self.waits(trainer):
                self._retired.add(trainer)
                self._figures.retired_trainers.append(trainer)
                self._note("trainer_retired", trainer=trainer)
                return -1
        return 0

    def release(self) -> None:
        """Let the waiting trainers leave, and those whose scripts ended early: no trainer trains any more."""
        if self._plan.trainers_at_least and not self._released:
            self._released = True
            self._tell(0)

    def scale(self, count: int, left: Iterable[int]) -> str:
        """Set how many are to train; returns a sentence, or raises MpidataError if that is impossible."""
        plan, now = self._plan, len(self.training(left))
        if not plan.trainers_at_least:
            raise MpidataError(
                "The number of trainers of this job cannot be changed: its job file has no 'trainers.elastic'."
            )
        if not plan.trainer_spares:
            raise MpidataError("The number of trainers cannot be changed: start the job with 'trainers.spares'.")
        if not now:
            raise MpidataError("This job is ending: its training is over.")
        if count < plan.trainers_at_least:
            raise MpidataError(
                f"There cannot be {count} trainers: at least {plan.trainers_at_least} must train "
                "('trainers.elastic.at_least')."
            )
        if count > now + len(self._waiting):
            spares = f"{len(self._waiting)} to spare" if self._waiting else "none to spare"
            back = " Trainers that have left cannot return in this run." if self._retired else ""
            raise MpidataError(
                f"{count} trainers would be {count - now} more, but the job has {spares}.{back} Start the job with "
                "more 'trainers.spares'."
            )
        self._wanted = count
        self._tell(count)
        trainers = f"{count} trainer{'s' * (count > 1)}"
        return (
            f"{trainers} from the next step on, as before."
            if count == now
            else f"{trainers} from the next step on, there were {now}."
        )

    def _tell(self, count: int) -> None:
        self._number += 1
        self._order(self._number, count)
