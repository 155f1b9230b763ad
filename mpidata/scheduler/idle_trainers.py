"""Trainers that draw nothing while others wait: their samples go to those that draw, or mpidata prints why not.

This happens with tensor and pipeline parallelism: some trainers draw batches and send them to the others. The samples
of those that do not draw would fill their buffers and block the solvers.
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

# If all trainers train in step, one that has drawn a batch waits for the others in a collective call, not in a draw.
# But a script may draw some batches in advance while another trainer still starts, for example logs in to a service.
AFTER_S = 15.0


class IdleTrainers:
    """Detects trainers that have never asked for a batch while another one, which has drawn some, waits for the next.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    messages : Messages
        Messages to the trainers.
    output : RunOutput
        The run's output.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, plan: Plan, messages: Messages, output: RunOutput) -> None:
        self._plan = plan
        self._messages = messages
        self._output = output
        self._idle: set[int] = set()
        self._told: set[int] = set()
        self._why_not = why_not(plan)

    def status(self, trainer: int, event: Status) -> None:
        """Process a trainer's status, and act if it waits for an idle one."""
        (self._idle.add if event.idle else self._idle.discard)(trainer)
        if event.asks_us < AFTER_S * 1e6 or not event.statistics[DRAWN]:
            return
        for idle in sorted(self._idle - self._told):
            self._told.add(idle)
            self._tell(idle)

    def _tell(self, idle: int) -> None:
        if self._why_not:
            self._output.note("no_hand_over", trainer=idle, reason=self._why_not)
            why_not = f"Its samples cannot go to them, because {self._why_not}."
            say_late(self._plan.run, f"Trainer {idle} draws nothing, and others wait for samples. {why_not}")
            return
        self._messages.hands_over(idle)
        self._output.note("hand_over", trainer=idle)
        say_late(self._plan.run, f"Trainer {idle} draws nothing: its samples go to the trainers that draw.")


def why_not(plan: Plan) -> str:
    """Return why a trainer's samples cannot go to others, "" if they can; as `mpidata_is_idle_locked` decides."""
    reasons = {
        "the job has 'checkpoint', to which each trainer writes its part": plan.checkpoint_every_s or plan.checkpoint,
        "the job has 'trainers.elastic'": plan.trainers_at_least,
        "the job has 'samples.window'": plan.samples_window > 1,
        "the job has 'buffer.repeats'": plan.repeats,
        "the job has 'journal'": plan.journal,
        "the run is a replay": plan.replay,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
