"""Requests to change the number of loaders, groups or trainers, and the answers: private files of a run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import read_own, write_text

__all__ = ["Answer", "Request", "answer", "ask", "take", "take_answer", "withdraw"]

_NUMBER = re.compile(r"scale-([0-9a-f]{16})")


@dataclasses.dataclass(frozen=True)
class Request:
    """A request for another number of ranks.

    Attributes
    ----------
    number : str
        Unique for each request: 16 hexadecimal digits.
    attempt : int
        The start of the run for which it is, so that a resumed run does not take an old request.
    kind : str
        `loaders`, `groups` or `trainers`.
    count : int
        The new number.
    """

    number: str
    attempt: int
    kind: str
    count: int


@dataclasses.dataclass(frozen=True)
class Answer:
    """The scheduler's answer: whether it refuses, and a sentence."""

    refused: bool
    sentence: str


def ask(run: RunFolder, attempt: int, kind: str, count: int) -> Request:
    """Write a request; raises OSError if that fails."""
    request = Request(secrets.token_hex(8), attempt, kind, count)
    write_text(_request(run, request.number), json.dumps(dataclasses.asdict(request)))
    return request


def withdraw(run: RunFolder, request: Request) -> None:
    """Withdraw a request that the scheduler has not taken yet."""
    _request(run, request.number).unlink(missing_ok=True)


def take(run: RunFolder, attempt: int) -> Iterator[Request]:
    """Take the waiting requests, each once; drop invalid ones and those for another start of the run."""
    try:
        names = [path.name for path in run.private.iterdir()]
    except OSError:
        return
    for match in filter(None, map(_NUMBER.fullmatch, sorted(names))):
        path, request = _request(run, match[1]), None
        with contextlib.suppress(OSError, ValueError, TypeError, MpidataError):
            request = _checked(Request(**json.loads(read_own(path))), match[1])
        try:
            path.unlink()
        except OSError:  # else it would be taken again
            continue
        if request is not None and request.attempt == attempt:
            yield request


def answer(run: RunFolder, request: Request, said: Answer) -> None:
    """Answer a request that was taken, if the folder can be written."""
    with contextlib.suppress(OSError):
        write_text(_answer(run, request.number), json.dumps(dataclasses.asdict(said)))


def take_answer(run: RunFolder, request: Request) -> Answer | None:
    """Take the answer to a request; None if there is none yet."""
    path = _answer(run, request.number)
    try:
        said = Answer(**json.loads(read_own(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise MpidataError(f"Cannot read the answer {path}: {error}. It is also in the run's events.jsonl.") from None
    path.unlink(missing_ok=True)
    return said


def _checked(request: Request, number: str) -> Request:
    if request.number != number or not type(request.attempt) is type(request.count) is int:
        raise ValueError("this is not a request")
    return request


def _request(run: RunFolder, number: str) -> Path:
    return run.private / f"scale-{number}"


def _answer(run: RunFolder, number: str) -> Path:
    return run.private / f"scaled-{number}"
