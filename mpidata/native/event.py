"""Events from the ranks to the scheduler: `mpidata_event` of messages.h, with one class in Python for each kind.

Each dispatch costs two events, so they must be cheap: they are not frozen, which would take four times as long.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpidata.native import constants, structures

__all__ = [
    "STATISTICS",
    "Adopted",
    "Cancel",
    "CheckpointWanted",
    "CheckpointWritten",
    "Closed",
    "Died",
    "Error",
    "Event",
    "Finalized",
    "Goodbye",
    "Held",
    "Lacks",
    "Losses",
    "Next",
    "Ready",
    "RecordStopped",
    "Report",
    "Status",
    "Stop",
    "read",
]

STATISTICS = ("received", "validation", "duplicates", "drawn", "fill", "capacity", "bytes", "windows")
"""The figures of a status, in order: the fields of `mpidata_statistics`."""
_CLOSED = attrgetter("simulation", "steps", "failed", "next_us", "start_us", "room_us", "total_us")
_USAGE = attrgetter("memory_kb", "cpu_us")
_REPORT = struct.Struct("=qd")  # batch and value, before the name


class Usage(NamedTuple):
    """Resources that a process has used since its start: peak memory, and processor time."""

    memory_kb: int
    cpu_us: int


NO_USAGE = Usage(0, 0)


@dataclass(kw_only=True)
class Event:
    """The sender of an event: a rank of the group `index`, or the loader, inference rank or trainer `index`."""

    of_solver: bool
    index: int
    rank: int
    of_loader: bool = False
    of_server: bool = False
    of_inference: bool = False
    of_learner: bool = False
    of_mate: bool = False


@dataclass(kw_only=True)
class Closed(Event):
    """The simulation that a group closes, -1 for none; `failed`: 0, GIVEN_UP or TRY_FAILED, with the reason in `text`.

    Of `total_us` microseconds since it closed the one before, rank 0 of the group waited for the simulation
    (`next_us`), computed until its first step was over (`start_us`), and waited for room in the buffers (`room_us`);
    `usage` is that of its process.
    """

    simulation: int
    steps: int
    failed: int
    text: str
    next_us: int = 0
    start_us: int = 0
    room_us: int = 0
    total_us: int = 0
    usage: Usage = NO_USAGE


class Next(Closed):
    """A group asks for a simulation; a loader, or an inference rank, is ready for requests."""


class Finalized(Closed):
    """A group, a loader or an inference rank has left."""


@dataclass(kw_only=True)
class Held(Event):
    """A trainer holds every step of a simulation that it must expect, according to this try."""

    simulation: int
    by_try: int


@dataclass(kw_only=True)
class Status(Event):
    """A trainer's figures, in the order of STATISTICS; whether a draw starves, and whether the buffer is full.

    `ended`: the script knows that the stream is over; `all_drawn`: and has drawn all samples. `waited_us`: total time
    for which its loop has waited for batches; `asks_us`: for the next one; `idle`: it has never requested one; `usage`
    of its process.
    """

    statistics: tuple[int, ...]
    starved: bool
    full: bool
    ended: bool
    all_drawn: bool
    waited_us: int = 0
    asks_us: int = 0
    idle: bool = False
    usage: Usage = NO_USAGE


@dataclass(kw_only=True)
class Report(Event):
    """A trainer reports values: name, batch number and value of each."""

    values: tuple[tuple[str, int, float], ...]


@dataclass(kw_only=True)
class Stop(Event):
    """A training script has ended before the stream; `failed`: because of an error."""

    failed: bool
    text: str


@dataclass(kw_only=True)
class Ready(Event):
    """A trainer answers whether it can join the spawned group or loader of this number at once, or has joined it.

    `answer`: one of constants.ANSWER_....
    """

    role: int
    number: int
    answer: int


@dataclass(kw_only=True)
class Lacks(Event):
    """A trainer lacks steps of a simulation that another one had."""

    simulation: int


@dataclass(kw_only=True)
class Adopted(Event):
    """A trainer has carried out this number of changes of the trainers, and has reported what it lacks."""

    changes: int


class Goodbye(Event):
    """A trainer has closed its stream."""


@dataclass(kw_only=True)
class Error(Event):
    """A rank reports an error that ends the job; `text` is the whole sentence."""

    text: str


@dataclass(kw_only=True)
class CheckpointWanted(Event):
    """A trainer's script requests a checkpoint at this batch."""

    batch: int


@dataclass(kw_only=True)
class CheckpointWritten(Event):
    """A trainer has written its part of a checkpoint: `text` is its SHA-256.

    Or it has `failed`, for example constants.LOOP_OVER, and `text` is the reason.
    """

    number: int
    batch: int
    bytes: int
    failed: int
    text: str


@dataclass(kw_only=True)
class Died(Event):
    """A rank has died, as MPI reports."""

    rank_in_group: int


@dataclass(kw_only=True)
class RecordStopped(Event):
    """A trainer has stopped recording; `text` is the whole sentence."""

    text: str


@dataclass(kw_only=True)
class Cancel(Event):
    """A trainer no longer needs these simulations."""

    simulations: tuple[int, ...]


@dataclass(kw_only=True)
class Losses(Event):
    """Losses of simulations that a trainer's script has passed: one structures.LOSSES for each simulation."""

    sums: NDArray[np.void]


def _text(raw: Any) -> str:
    text: bytes = raw.text
    return text.decode("utf-8", errors="replace")


def _closed(kind: type[Closed], raw: Any, sender: dict[str, Any]) -> Closed:
    closed = raw.closed
    simulation, steps, failed, next_us, start_us, room_us, total_us = _CLOSED(closed)
    return kind(
        **sender, simulation=simulation, steps=steps, failed=failed, text=_text(raw) if failed else "",
        next_us=next_us, start_us=start_us, room_us=room_us, total_us=total_us, usage=_usage(closed),
    )  # fmt: skip


def _usage(raw: Any) -> Usage:
    return Usage._make(_USAGE(raw.usage))


def _status(raw: Any, sender: dict[str, Any]) -> Status:
    status = raw.status
    flags = {name: bool(getattr(status, name)) for name in ("starved", "full", "ended", "all_drawn", "idle")}
    figures = tuple(getattr(status.statistics, name) for name in STATISTICS)
    times = {"waited_us": status.waited_us, "asks_us": status.asks_us}
    return Status(**sender, **flags, **times, statistics=figures, usage=_usage(status))


def _written(raw: Any, sender: dict[str, Any]) -> CheckpointWritten:
    written = raw.written
    values = {"number": written.number, "batch": written.batch, "bytes": written.bytes, "failed": written.failed}
    return CheckpointWritten(**sender, **values, text=_text(raw))


def _reports(raw: Any) -> Iterator[tuple[str, int, float]]:
    packed = ctypes.string_at(ctypes.addressof(raw) + structures.RawEvent.text.offset, raw.report.bytes)
    at = 0
    while at < len(packed):
        batch, value = _REPORT.unpack_from(packed, at)
        name, _, _ = packed[at + _REPORT.size :].partition(b"\0")
        at += _REPORT.size + len(name) + 1
        yield name.decode(errors="replace"), batch, value


def _losses(raw: Any, sender: dict[str, Any]) -> Losses:
    sums = np.frombuffer(raw, structures.LOSSES, raw.losses.count, structures.RawEvent.text.offset)
    return Losses(**sender, sums=sums.copy())


def _cancel(raw: Any, sender: dict[str, Any]) -> Cancel:
    ids = np.frombuffer(raw, np.int64, raw.cancel.count, structures.RawEvent.text.offset)
    return Cancel(**sender, simulations=tuple(ids.tolist()))


@functools.cache
def _role(role: int) -> dict[str, bool]:
    of = {"of_solver": constants.ROLE_SOLVER, "of_loader": constants.ROLE_LOADER, "of_server": constants.ROLE_SERVER}
    of |= {
        "of_inference": constants.ROLE_INFERENCE,
        "of_learner": constants.ROLE_LEARNER,
        "of_mate": constants.ROLE_MATE,
    }
    return {name: role == one for name, one in of.items()}


@functools.cache
def readers() -> dict[int, Callable[[Any, dict[str, Any]], Event]]:
    """Return the function that reads an event, by kind."""
    return {
        constants.EVENT_NEXT: lambda raw, sender: _closed(Next, raw, sender),
        constants.EVENT_FINALIZED: lambda raw, sender: _closed(Finalized, raw, sender),
        constants.EVENT_HELD: lambda raw, sender: Held(
            **sender, simulation=raw.held.simulation, by_try=raw.held.by_try
        ),
        constants.EVENT_STATUS: _status,
        constants.EVENT_REPORT: lambda raw, sender: Report(**sender, values=tuple(_reports(raw))),
        constants.EVENT_STOP: lambda raw, sender: Stop(**sender, failed=bool(raw.stop.failed), text=_text(raw)),
        constants.EVENT_GOODBYE: lambda raw, sender: Goodbye(**sender),
        constants.EVENT_ERROR: lambda raw, sender: Error(**sender, text=_text(raw)),
        constants.EVENT_CHECKPOINT_WANTED: lambda raw, sender: CheckpointWanted(**sender, batch=raw.wanted.batch),
        constants.EVENT_CHECKPOINT_WRITTEN: _written,
        constants.EVENT_DIED: lambda raw, sender: Died(**sender, rank_in_group=raw.died.rank_in_group),
        constants.EVENT_RECORD_STOPPED: lambda raw, sender: RecordStopped(**sender, text=_text(raw)),
        constants.EVENT_LOSSES: _losses,
        constants.EVENT_READY: lambda raw, sender: Ready(
            **sender,
            role=raw.ready.role,
            number=raw.ready.group,
            answer=raw.ready.answer,
        ),
        constants.EVENT_LACKS: lambda raw, sender: Lacks(**sender, simulation=raw.lacks.simulation),
        constants.EVENT_ADOPTED: lambda raw, sender: Adopted(**sender, changes=raw.adopted.changes),
        constants.EVENT_CANCEL: _cancel,
    }


def read(raw: ctypes.Structure) -> Event:
    """Return a `RawEvent` as one of the classes; raises KeyError if its kind is unknown."""
    return readers()[raw.kind](raw, {**_role(raw.role), "index": raw.index, "rank": raw.rank})
