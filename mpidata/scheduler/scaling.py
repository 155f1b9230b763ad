"""How the scheduler handles requests for other numbers of loaders, groups or trainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.scale_requests import Answer, Request, answer, take

__all__ = ["Scaling"]

_Scaler = Callable[[int], str]

_LOOK_S = 0.5


class Scaling:
    """Looks for requests, carries them out, and answers them.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    scalers : mapping of str to callable
        By kind: sets how many of them are to work and returns a sentence, or raises MpidataError.
    note : callable
        Writes an event.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, plan: Plan, scalers: Mapping[str, _Scaler], note: Callable[..., None]) -> None:
        self._run = RunFolder(plan.run)
        self._attempt = plan.attempt
        self._scalers = scalers
        self._note = note
        self._next_look = 0.0

    def tick(self, now: float) -> None:
        """Look for requests; `now`: seconds of a monotonic clock. To be called often."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        for request in take(self._run, self._attempt):
            said = self._do(request)
            self._note("scale", **{request.kind: request.count}, refused=said.refused, answer=said.sentence)
            answer(self._run, request, said)

    def _do(self, request: Request) -> Answer:
        try:
            if request.kind not in self._scalers:
                raise MpidataError(f"The number of {request.kind!r} of a job cannot be changed.")
            if request.count < 1:
                raise MpidataError(f"There cannot be {request.count} {request.kind}: give at least 1.")
            return Answer(False, self._scalers[request.kind](request.count))
        except MpidataError as error:
            return Answer(True, str(error))
