"""Trainers that have died while the others go on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mpidata.loading.figures import EXITS, STEP_WAITS_S
from mpidata.run import deadlines
from mpidata.run.exits import read_exit_note
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.scheduler.deaths.lost_groups import VANISHED, Cause
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.figures.summary import DRAWN
from mpidata.scheduler.trainers import Silence

__all__ = ["LostTrainers"]

# For so long a trainer is late in the reports of one that waits: within a second, who has come to wait says so itself.
_SURE_S = 2.0


class LostTrainers:
    """Counts them, and tells why each has died.

    Parameters
    ----------
    plan : Plan
        Of the job.
    output : RunOutput
        Gets the event `trainer_lost`, once the exit note is there, or is waited for no longer; its figures have the
        numbers of those that were lost.
    silence : Silence
        Knows which trainers give no sign of life.

    Notes
    -----
    For one thread. Times are in seconds, of a clock that never goes back.
    """

    def __init__(self, plan: Plan, output: RunOutput, silence: Silence) -> None:
        self._plan, self._silence = plan, silence
        self._note, self._figures, self._lost = output.note, output.figures, output.figures.lost_trainers
        self._untold: dict[int, tuple[float, int]] = {}
        self._waits_s: dict[int, float] = {}
        self._late: set[int] = set()
        self._suspected: dict[int, dict[int, float]] = {}  # by who waits: late ones, and after how long they were so
        self._exiting: dict[int, tuple[float, int]] = {}  # whose scripts have ended in the middle: since when, batches
        self._drawn: dict[float, list[int]] = {}  # by that moment: batches of all, some time after it

    def one_may_die(self, living: int) -> bool:
        """Whether the others go on when one of so many dies that have not left the job."""
        return 0 < self._plan.trainers_at_least <= living - 1

    def few(self, living: int) -> str:
        """Say that the others are too few to go on then; "" where they are not, or no death is survived."""
        at_least = self._plan.trainers_at_least
        if not at_least or self.one_may_die(living):
            return ""
        left = "no trainer is" if living < 2 else "1 trainer is" if living == 2 else f"{living - 1} trainers are"
        return f"{left} left, fewer than 'trainers.elastic.at_least', {at_least}"

    def reported(
        self, trainer: int, values: Iterable[tuple[str, int, float]], training: Sequence[int],
        living: Sequence[int], now: float,
    ) -> str:  # fmt: skip
        """Take in what a trainer reports; returns as `waits`."""
        why = ""
        for name, _, value in values:
            if name == EXITS:
                self._exiting[trainer] = now, int(value)
            elif name == STEP_WAITS_S:
                why = self.waits(trainer, value, training, living, now) or why
        return why

    def all_exit(self, training: Sequence[int]) -> bool:
        """Whether the scripts of all that train have ended in the middle: then they leave in order."""
        return bool(self._exiting and training) and self._exiting.keys() >= set(training)

    def waits(self, trainer: int, seconds: float, training: Sequence[int], living: Sequence[int], now: float) -> str:
        """Take in for how long a trainer has waited for the others; one that has let them wait for too long is killed.

        Returns why the job is to end, as all wait for one another; "" where it is not. They may also wait for a spare.
        """
        self._waits_s[trainer] = seconds
        allowed, before = self._plan.trainers_timeout_s, self._suspected.pop(trainer, {})
        if seconds:
            self._give_up_exiting(seconds)
        if not self._plan.trainers_at_least or seconds < allowed:
            return ""
        late = {one: before.get(one, seconds) for one in training if not self._waits_s.get(one)}
        self._suspected[trainer] = late
        for one in [one for one, since in late.items() if seconds - since >= _SURE_S and one not in self._late]:
            self._give_up(one, seconds)
        if any(self._waits_s.get(one, 0.0) < allowed for one in training):
            return ""
        for one in set(living).difference(training, self._late):
            if self._silence.since(one, now):
                self._give_up(one, seconds)
        if self._late.difference(self._lost):  # they will be told of its death
            return ""
        return (
            f"All trainers have waited for one another for {allowed:g} s. Each must make the same calls that all make "
            "together, as many steps and sums; their logs say where each waits."
        )

    def _give_up(self, trainer: int, seconds: float) -> None:
        RunFolder(self._plan.run).give_up(trainer, "trainer")
        self._note("trainer_late", trainer=trainer, seconds=round(seconds, 1))
        self._late.add(trainer)

    def _give_up_exiting(self, seconds: float, before: float = math.inf) -> None:
        """Kill those that sleep as their scripts have ended, since before then: others need them for what all make."""
        for one, (since, _) in self._exiting.items():
            if one not in self._late and since < before:
                self._give_up(one, seconds)

    def _look_who_draws(self, now: float, others: Iterable[int]) -> None:
        """Give up those whose scripts have ended where others draw after that, and do not only save what they have."""
        drawn = self._figures.per_trainer(DRAWN)
        for since, _ in self._exiting.values():
            if now - since < _SURE_S:  # the others may be about to end, too
                continue
            before = self._drawn.setdefault(since, list(drawn))
            if any(drawn[one] > before[one] or now - since > deadlines.SILENT_S for one in others):
                self._give_up_exiting(now - since, now - _SURE_S)

    def died(self, trainer: int, left: int, now: float) -> None:
        """Take in that a trainer has died, and how many are left that train."""
        self._lost.append(trainer)
        self._untold[trainer] = now + deadlines.WHY_TRAINER_DIED_S, left

    def tick(self, now: float, trainers: Iterable[int], in_loop: Iterable[int] = ()) -> None:
        """Tell what is known by now, and kill those that gave no sign of life for too long: all may wait for them.

        With a stream also those whose scripts have ended while others draw on: their samples come again.
        """
        if self._plan.has_stream and self._exiting:
            self._look_who_draws(now, set(in_loop).difference(self._exiting))
        allowed = self._plan.trainers_timeout_s
        for trainer in trainers if self._plan.has_stream and self._plan.trainers_at_least else ():
            if (seconds := self._silence.since(trainer, now)) >= allowed and trainer not in self._late:
                self._give_up(trainer, seconds)
        for trainer, (by, left) in list(self._untold.items()):
            ended = read_exit_note(RunFolder(self._plan.run).rank_exit(1 + trainer))
            if ended is None and now < by:
                continue
            del self._untold[trainer]
            cause = Cause("unknown", VANISHED)
            if ended is not None:
                cause = Cause(ended.cause, ended.sentence(), signal=ended.signal, status=ended.status)
                self._figures.had(trainer, ended.batches, self._plan.has_stream)
            if trainer in self._exiting:
                when = f"in the middle of the training, after {self._exiting[trainer][1]} batches"
                cause = Cause("exit", f"has ended, as its script did {when}", status=0)
            elif trainer in self._late:
                said = f"was killed, as the others had waited for it for {self._plan.trainers_timeout_s:g} s"
                cause = Cause("silent", f"{said} (trainers.timeout_s)")
            self._note("trainer_lost", trainer=trainer, left=left, **cause.told())
