"""Trainers that have died while the others continue."""

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
from mpidata.scheduler.trainers import SilenceWatch

__all__ = ["LostTrainers"]

# How long a waiting trainer must report another as late: one that also waits reports that itself within a second.
_SURE_S = 2.0


class LostTrainers:
    """Counts lost trainers, and writes why each has died.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    output : RunOutput
        Receives the event `trainer_lost`, once the exit note exists or is no longer waited for; its figures have the
        numbers of lost trainers.
    silence : SilenceWatch
        Detects trainers that give no sign of life.

    Notes
    -----
    Not thread-safe. Times are in seconds of a monotonic clock.
    """

    def __init__(self, plan: Plan, output: RunOutput, silence: SilenceWatch) -> None:
        self._plan, self._silence = plan, silence
        self._note, self._figures, self._lost = output.note, output.figures, output.figures.lost_trainers
        self._untold: dict[int, tuple[float, int]] = {}
        self._waits_s: dict[int, float] = {}
        self._late: set[int] = set()
        self._last_death = -math.inf
        self._suspected: dict[int, dict[int, float]] = {}  # by waiting trainer: the late ones, and after which wait
        self._exiting: dict[int, tuple[float, int]] = {}  # by trainer whose script has ended early: since when, batches
        self._drawn: dict[float, list[int]] = {}  # by that time: batches of all trainers some time later

    def one_may_die(self, living: int) -> bool:
        """Whether the others continue if one of `living` trainers, those that have not left the job, dies."""
        return 0 < self._plan.trainers_at_least <= living - 1

    def few(self, living: int) -> str:
        """Return that the others would be too few to continue; "" if they are not, or no death is survived."""
        at_least = self._plan.trainers_at_least
        if not at_least or self.one_may_die(living):
            return ""
        left = "no trainer is" if living < 2 else "1 trainer is" if living == 2 else f"{living - 1} trainers are"
        return f"{left} left, fewer than 'trainers.elastic.at_least', {at_least}"

    def reported(
        self, trainer: int, values: Iterable[tuple[str, int, float]], training: Sequence[int],
        living: Sequence[int], now: float,
    ) -> str:  # fmt: skip
        """Process a trainer's report; returns as `waits`."""
        why = ""
        for name, _, value in values:
            if name == EXITS:
                self._exiting[trainer] = now, int(value)
            elif name == STEP_WAITS_S:
                why = self.waits(trainer, value, training, living, now) or why
        return why

    def all_exit(self, training: Sequence[int]) -> bool:
        """Whether the scripts of all that train have ended early: they then leave in order."""
        return bool(self._exiting and training) and self._exiting.keys() >= set(training)

    def waits(self, trainer: int, seconds: float, training: Sequence[int], living: Sequence[int], now: float) -> str:
        """Process for how long a trainer has waited for the others, and kill those for which it waited too long.

        Returns why the job must end if all wait for one another, else "". They may also wait for a spare.
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
            if self._silence.since(one, now) or not self._silence.has_begun(one):
                self._give_up(one, seconds)
        if self._late.difference(self._lost) or now - self._last_death < allowed:  # they will learn of the death
            return ""
        return (
            f"All trainers have waited for one another for {allowed:g} s. Each must make the same collective calls, "
            "that is, the same number of steps and sums; their logs show where each waits."
        )

    def _give_up(self, trainer: int, seconds: float) -> None:
        RunFolder(self._plan.run).give_up(trainer, "trainer")
        self._note("trainer_late", trainer=trainer, seconds=round(seconds, 1))
        self._late.add(trainer)

    def _give_up_exiting(self, seconds: float, before: float = math.inf) -> None:
        """Kill those whose scripts ended before `before`: they sleep, and others need them for collective calls."""
        for one, (since, _) in self._exiting.items():
            if one not in self._late and since < before:
                self._give_up(one, seconds)

    def _look_who_draws(self, now: float, others: Iterable[int]) -> None:
        """Kill those whose scripts have ended if others still draw, rather than only save their models."""
        drawn = self._figures.per_trainer(DRAWN)
        for since, _ in self._exiting.values():
            if now - since < _SURE_S:  # the others may also be about to end
                continue
            before = self._drawn.setdefault(since, list(drawn))
            if any(drawn[one] > before[one] or now - since > deadlines.SILENT_S for one in others):
                self._give_up_exiting(now - since, now - _SURE_S)

    def died(self, trainer: int, left: int, now: float) -> None:
        """Note that a trainer has died, and how many are left that train."""
        self._lost.append(trainer)
        self._last_death = now
        self._untold[trainer] = now + deadlines.WHY_TRAINER_DIED_S, left

    def tick(self, now: float, trainers: Iterable[int], in_loop: Iterable[int] = ()) -> None:
        """Report the known causes, and kill trainers without a sign of life for too long: all may wait for them.

        With a stream, also those whose scripts have ended while others still draw: their samples are sent again.
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
                cause = Cause("exit", f"has ended, because its script ended {when}", status=0)
            elif trainer in self._late:
                said = f"was killed, because the others had waited for it for {self._plan.trainers_timeout_s:g} s"
                cause = Cause("silent", f"{said} (trainers.timeout_s)")
            self._note("trainer_lost", trainer=trainer, left=left, **cause.told())
