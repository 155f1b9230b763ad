"""Sentences that `mpidata run` shows when a trainer dies, joins or leaves while the others continue."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from mpidata.launch.page.tail import Tail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["Changes"]


class Changes(Tail):
    """Looks for such changes in the events of a run.

    Parameters
    ----------
    run : RunFolder
        Its existing events are skipped.
    plan : Plan
        Of the job.
    """

    def __init__(self, run: RunFolder, plan: Plan) -> None:
        super().__init__(run.events)
        self._logs = run.logs
        self._spares = set(range(plan.trainers - plan.trainer_spares, plan.trainers))  # that wait

    def lines(self, last: bool = False) -> list[str]:
        """Return a sentence for each change since the last call."""
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
            return f"{who} no longer trains, because fewer trainers were requested."
        if kind != "trainer_lost":
            return ""
        if waited:
            return f"{who}, which waited as a spare, {event['how']}."
        left = event["left"]
        others = "the other one takes" if left == 1 else f"the other {left} take"
        if not left:
            return f"{who} {event['how']}."
        prints = "" if trainer else f" Their output is in {self._logs} and no longer shown here."
        return f"{who} {event['how']}; {others} over what it had not trained on.{prints}"
