"""Trainers that wait for a place, and how many are to train."""

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
    """Has spares take the places of trainers that have died; and others train, or fewer, where that is asked for.

    Parameters
    ----------
    plan : Plan
        Of the job.
    order : callable
        Tells all trainers how many are to train, with a number greater than all before; with 0 those that wait leave.
    note : callable
        Writes an event.
    figures : Figures
        Gets the numbers, from the start, of spares that have taken a place, and of trainers that train no more.

    Notes
    -----
    For one thread. Those that train find out by themselves who is to take which place, between two steps.
    """

    def __init__(
        self, plan: Plan, order: Callable[[int, int], object], note: Callable[..., Any], figures: Figures
    ) -> None:
        self._plan, self._order, self._note, self._figures = plan, order, note, figures
        self._waiting = set(range(plan.trainers - plan.trainer_spares, plan.trainers))
        self._joining: set[int] = set()  # with a share of the stream, but in no checkpoint yet
        self._retired: set[int] = set()
        self._wanted = plan.trainers - plan.trainer_spares
        self._number = 0
        self._released = False

    def training(self, trainers: Iterable[int]) -> list[int]:
        """Give those of these trainers that train."""
        return [one for one in trainers if one not in self._waiting | self._retired]

    def waits(self, trainer: int) -> bool:
        """Whether a trainer has no place: it is a spare, or was one too many."""
        return trainer in self._waiting | self._retired

    def not_retired(self, trainers: Iterable[int]) -> list[int]:
        """Give those of these trainers that were not one too many: they train, or wait for a place."""
        return [one for one in trainers if one not in self._retired]

    def died(self, trainer: int, left: Iterable[int]) -> None:
        """Take in that a trainer or spare has died, and who is left: where one waits, it is to take the place."""
        self._waiting.discard(trainer)
        self._joining.discard(trainer)
        if self._waiting and len(self.training(left)) < self._wanted:
            self._tell(self._wanted)

    def joins(self, trainer: int, names: Iterable[str]) -> bool:
        """Take in what a trainer reports; whether it is to have a share of the stream from now on."""
        if constants.JOINS not in names or trainer not in self._waiting:
            return False
        self._waiting.discard(trainer)
        self._joining.add(trainer)
        return True

    def reported(self, trainer: int, names: Iterable[str]) -> int:
        """Take in what a trainer reports; 1 where it trains from now on, -1 where it does so no more, else 0."""
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
        """Let those leave that wait, as nobody trains any more, or whose scripts have ended in the middle."""
        if self._plan.trainers_at_least and not self._released:
            self._released = True
            self._tell(0)

    def scale(self, count: int, left: Iterable[int]) -> str:
        """Have so many train from now on; returns a sentence, or raises MpidataError where that cannot be."""
        plan, now = self._plan, len(self.training(left))
        if not plan.trainers_at_least:
            raise MpidataError(
                "This job cannot have other numbers of trainers: its job file has no 'trainers.elastic'."
            )
        if not plan.trainer_spares:
            raise MpidataError("This job cannot have other numbers of trainers: start it with 'trainers.spares'.")
        if not now:
            raise MpidataError("This job is ending: no trainer trains any more.")
        if count < plan.trainers_at_least:
            raise MpidataError(
                f"There cannot be {count} trainers: at least {plan.trainers_at_least} are to train "
                "('trainers.elastic.at_least')."
            )
        if count > now + len(self._waiting):
            spares = f"{len(self._waiting)} to spare" if self._waiting else "none to spare"
            back = " Those that have left do not come back in this run." if self._retired else ""
            raise MpidataError(
                f"{count} trainers would be {count - now} more, but the job has {spares}.{back} Start it with more "
                "'trainers.spares'."
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
