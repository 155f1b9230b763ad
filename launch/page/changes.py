"""Trainers that die, come or leave while the others go on, in sentences for `mpidata run` to show at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from mpidata.launch.page.tail import Tail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["Changes"]


class Changes(Tail):
    """Looks at the events of a run for them.

    Parameters
    ----------
    run : RunFolder
        Whose events. What is in them already is not new.
    plan : Plan
        Of the job.
    """

    def __init__(self, run: RunFolder, plan: Plan) -> None:
        super().__init__(run.events)
        self._logs = run.logs
        self._spares = set(range(plan.trainers - plan.trainer_spares, plan.trainers))  # that wait

    def lines(self, last: bool = False) -> list[str]:
        """Give a sentence for each that has come since the last call."""
        return list(self._told(super().lines(last)))

    def _told(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            if '"event": "trainer_' not in line:
                continue
            with contextlib.suppress(ValueError, KeyError, TypeError):
                event = json.loads(line)
                if sentence := self._sentence(event["event"], event["trainer"], event):
                    yield sentence

    def _sentence(self, kind: str, trainer: int, event: dict[str, object]) -> str:
        who, waited = f"Trainer {trainer} (rank {1 + trainer})", trainer in self._spares
        if kind == "trainer_joined":
            self._spares.discard(trainer)
            return f"{who}, a spare, has taken a place, and trains from now on."
        if kind == "trainer_retired":
            return f"{who} trains no more, as fewer are to train."
        if kind != "trainer_lost":
            return ""
        if waited:
            return f"{who}, which waited as a spare, {event['how']}."
        left = event["left"]
        others = "the other one goes on" if left == 1 else f"the other {left} go on"
        if not left:
            return f"{who} {event['how']}."
        prints = "" if trainer else f" What they print is in {self._logs}, and no longer here."
        return f"{who} {event['how']}; {others}, with what it had not trained on.{prints}"
