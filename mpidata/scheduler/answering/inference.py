"""The inference ranks of a job: which answer solvers, what replaces a lost one, and when they may leave."""

from __future__ import annotations

import time
from pathlib import Path

from mpidata.native.event import Closed
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.deaths.lost_groups import Cause
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.groups import Groups, Places
from mpidata.scheduler.loaders import Loaders
from mpidata.scheduler.messages import Messages

__all__ = ["InferenceRanks"]

_TRIES = 2  # retries of a rank that cannot be started
_LOST_IN_A_ROW = 8  # soon after they had joined: the function crashes, or hangs, on the questions
_DOES = {"silent": "never returns", "exit": "ends its rank", "abort": "ends its rank"}


class InferenceRanks(Loaders):
    """Manages the inference ranks of a job like loaders, but their work comes from the solvers.

    They leave when no solver is left, because a solver that is to stop may still wait for an answer.

    Parameters
    ----------
    plan, messages, output
        As for Loaders.
    solvers : Groups
        The groups that may send questions.
    """

    kind = "inference"
    name = "inference rank"

    def __init__(self, plan: Plan, messages: Messages, output: RunOutput, solvers: Groups) -> None:
        super().__init__(plan, messages, output)
        self._solvers = solvers
        self._joined: dict[int, float] = {}
        self._soon_lost: list[int] = []
        self._first_cause: Cause | None = None  # that of the first of `_soon_lost`
        self._absent_since: float | None = None  # since when no rank is ready to answer while solvers work
        self._coming: set[int] = set()  # ranks that may become ready

    def tick(self, now: float) -> None:
        """Act as for loaders; also end a job whose solvers have had no inference rank for too long."""
        super().tick(now)
        at_work = bool(set(self._solvers.alive).difference(self._solvers.waiting))
        if not self._any or self._serving or not at_work or self.leaving:
            self._absent_since, self._coming = None, set()
        else:
            self._look_at_absence(now)

    def _look_at_absence(self, now: float) -> None:
        coming = self.groups.starting.union(self.groups.alive)
        if self._absent_since is None or coming - self._coming:
            self._absent_since = now  # each rank that starts has the full time
        self._coming = coming
        allowed = self._plan.inference_timeout_s + (self._plan.inference_start_timeout_s if coming else 0.0)
        if now - self._absent_since < allowed:
            return
        last = max(coming or self.groups.lost, default=0)
        why = f"Inference rank {last} has not become ready" if coming else f"The last one was inference rank {last}"
        keys = "inference.start_timeout_s and inference.timeout_s" if coming else "inference.timeout_s"
        self._fail(
            f"No inference rank was ready to answer the solvers for {allowed:g} s ({keys}): allow more, or add "
            f"'inference.spares'. {why}.",
            last,
        )

    def next(self, loader: int, event: Closed) -> None:
        """Process that a rank is ready for questions."""
        self._joined.setdefault(loader, time.monotonic())
        super().next(loader, event)

    def _blame(self, loader: int, cause: Cause) -> None:
        """End a job that loses one rank after the other: a repeated question may crash each rank."""
        lived = time.monotonic() - self._joined.get(loader, 0.0)
        soon = lived < 10 + 2 * self._plan.inference_timeout_s
        if not soon:
            self._soon_lost.clear()
            return
        self._soon_lost.append(loader)
        if len(self._soon_lost) == 1:
            self._first_cause = cause
        if len(self._soon_lost) >= _LOST_IN_A_ROW and self._first_cause and not self.leaving:
            first, why = self._soon_lost[0], self._first_cause
            self._fail(
                f"{len(self._soon_lost)} inference ranks in a row were lost soon after joining, probably by a call "
                f"of inference.function, {self._plan.inference_function}, that {_DOES.get(why.kind, 'crashes')}. "
                f"Inference rank {first}, the first one, {why.sentence}; inference rank {loader}, the last one, "
                f"{cause.sentence}.",
                first,
            )

    def leave_after(self, groups: Groups) -> None:
        """Let all inference ranks leave if no solver group is left."""
        if not groups.alive:
            self.leave()

    @property
    def _places(self) -> Places:
        plan = self._plan
        return Places(plan.inference, plan.inference_in_world, "split", "pool", _TRIES)

    @property
    def _can_spawn(self) -> bool:
        return self._messages.can_spawn_inference

    @property
    def _figures(self) -> dict[str, int]:
        return self._output.figures.inference

    def _log_of(self, loader: int) -> Path:
        return PlannedRun(RunFolder(self._plan.run), self._plan).inference_log(loader)

    def _tell_serves(self, loader: int) -> None:
        self._messages.answers(loader)
