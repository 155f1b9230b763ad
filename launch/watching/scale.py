"""`mpidata scale`: asks a running job to change the number of loaders or groups, and waits for the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.runs import find_run
from mpidata.run.scale_requests import Request, ask, take_answer, withdraw

__all__ = ["scale"]

# The scheduler looks twice a second.
_ANSWER_S = 15.0
_LOOK_S = 0.1


def scale(path: str | Path, wanted: Mapping[str, int]) -> list[str]:
    """Request a number of each kind, one after the other; returns the scheduler's answer to each.

    Parameters
    ----------
    path : str or Path
        The run folder, or a link to it.
    wanted : mapping of str to int
        By `loaders` and `groups`.

    Raises
    ------
    MpidataError
        The request is refused, or not answered.
    """
    run = find_run(path)
    attempt = Plan.read(run.plan).attempt
    return [_ask(run, attempt, kind, count) for kind, count in wanted.items()]


def _ask(run: RunFolder, attempt: int, kind: str, count: int) -> str:
    _refuse_ended(run)
    try:
        request = ask(run, attempt, kind, count)
    except OSError as error:
        raise MpidataError(f"Cannot write into {run.private}: {error.strerror}. Make room.") from None
    try:
        return _wait(run, request)
    finally:
        withdraw(run, request)


def _wait(run: RunFolder, request: Request) -> str:
    deadline = time.monotonic() + _ANSWER_S
    while True:
        late = time.monotonic() > deadline
        if (answer := take_answer(run, request)) is not None:
            if answer.refused:
                raise MpidataError(answer.sentence)
            return answer.sentence
        _refuse_ended(run)
        if late:
            raise MpidataError(
                f"The scheduler of {run.path} has not answered within {_ANSWER_S:g} s. If the job runs and all of its "
                "ranks have joined, ask again."
            )
        time.sleep(_LOOK_S)


def _refuse_ended(run: RunFolder) -> None:
    if run.summary.exists():
        raise MpidataError(f"{run.path} no longer runs: it has a summary.json. Name a running one.")
