"""Trainers that draw nothing while others wait: their samples go to those that draw, or the user is told why not.

So it is in scripts of which only some trainers draw, and send their batches to the others: tensor and pipeline parallel
ones. The samples of the others would fill their buffers and hold up the solvers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpidata.run.side_channel import say_late
from mpidata.scheduler.figures.summary import DRAWN

if TYPE_CHECKING:
    from mpidata.native.event import Status
    from mpidata.run.plan import Plan
    from mpidata.scheduler.figures.run_output import RunOutput
    from mpidata.scheduler.messages import Messages

__all__ = ["IdleTrainers"]

# Where all trainers train in step, one that has drawn a batch waits for the others in a collective call, not in a draw.
# But a script may draw some batches in advance, while another trainer still gets ready, logs in somewhere say.
AFTER_S = 15.0


class IdleTrainers:
    """Notices trainers that have never asked for a batch while another one, that has had some, waits for its next.

    Parameters
    ----------
    plan : Plan
        Of the job.
    messages : Messages
        To the trainers.
    output : RunOutput
        Of the run.

    Notes
    -----
    For one thread.
    """

    def __init__(self, plan: Plan, messages: Messages, output: RunOutput) -> None:
        self._plan = plan
        self._messages = messages
        self._output = output
        self._idle: set[int] = set()
        self._told: set[int] = set()
        self._why_not = why_not(plan)

    def status(self, trainer: int, event: Status) -> None:
        """Take a trainer's status, and act where it waits for one that is idle."""
        (self._idle.add if event.idle else self._idle.discard)(trainer)
        if event.asks_us < AFTER_S * 1e6 or not event.statistics[DRAWN]:
            return
        for idle in sorted(self._idle - self._told):
            self._told.add(idle)
            self._tell(idle)

    def _tell(self, idle: int) -> None:
        if self._why_not:
            self._output.note("no_hand_over", trainer=idle, reason=self._why_not)
            why_not = f"Its samples do not go to them, as {self._why_not}."
            say_late(self._plan.run, f"Trainer {idle} draws nothing, and others wait for it. {why_not}")
            return
        self._messages.hands_over(idle)
        self._output.note("hand_over", trainer=idle)
        say_late(self._plan.run, f"Trainer {idle} draws nothing: its samples go to the trainers that draw.")


def why_not(plan: Plan) -> str:
    """Tell why a trainer's samples cannot go to others, "" where they can; `mpidata_is_idle_locked` has the same."""
    reasons = {
        "the job has 'checkpoint', in which each trainer has its part": plan.checkpoint_every_s or plan.checkpoint,
        "the job has 'trainers.elastic'": plan.trainers_at_least,
        "the job has 'samples.window'": plan.samples_window > 1,
        "the job has 'buffer.repeats'": plan.repeats,
        "the job has 'journal'": plan.journal,
        "the run is a replay": plan.replay,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
