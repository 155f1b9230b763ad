"""Reading the JSON documents of a run folder, each checked for the types of what mpidata uses of it.

A run folder may be damaged, edited or of another version. A document of other types is ignored, with a sentence for the
user, so that no code behind these readers checks types.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpidata.run.documents.json_shape import Items, Keys, Kind, Nullable, Shape, Values, Variants

__all__ = ["EVENT", "JOB", "MACHINE", "METRICS", "PROGRESS", "SUMMARY", "Lines", "ignored", "read_document"]

_MOST = 1e15  # of times, shares and rates; sums of them, in NumPy as well, stay exact enough


def _is_number(value: Any, most: float) -> bool:
    return type(value) in (int, float) and abs(value) <= most  # False for NaN; a bool is no number


def _is_axis(value: Any) -> bool:
    """Whether this is an axis of a parameter space: what JSON can have, with lists of choices."""
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        json.dumps(value)
        lists = [value.get(name) or [] for name in ("choices", "values")] if isinstance(value, dict) else []
        return all(isinstance(one, list) for one in lists)
    return False


_ANY = Kind("anything", lambda _: True)
_TEXT = Kind("a text", lambda value: isinstance(value, str))
_FLAG = Kind("true or false", lambda value: isinstance(value, bool))
_COUNT = Kind("a whole number from 0", lambda value: type(value) is int and 0 <= value < 2**63)
_INDEX = Kind("a whole number below 2^31", lambda value: type(value) is int and 0 <= value < 2**31)
_NUMBER = Kind("a number of at most 1e15", lambda value: _is_number(value, _MOST))
_VALUE = Kind("a finite number or null", lambda value: value is None or _is_number(value, sys.float_info.max))
_GROUP_STEP = Kind("a group with its seconds", lambda value: isinstance(value, list) and len(value) == 2 and all(
    _is_number(one, _MOST) for one in value
))  # fmt: skip

_SIMULATIONS = dict.fromkeys(("requested", "running", "complete", "failed", "cancelled"), _COUNT)
_TRAINERS = Items(_INDEX)
_CHANGES = dict.fromkeys(("lost_trainers", "joined_trainers", "retired_trainers"), _TRAINERS)
_TRAINING = Values(Keys({"first": _VALUE, "last": _VALUE}))
_LOADED: dict[str, Shape] = {
    "epoch": _COUNT,
    "samples": _COUNT,
    "per_second": _NUMBER,
    "batches": Items(_COUNT),
    "wait_s": Items(_NUMBER),
    "reading": Keys(dict.fromkeys(("parts", "counted", "read"), _COUNT), needs=("parts", "counted", "read")),
}

SUMMARY = Keys(
    {
        "status": _TEXT,
        "error": Nullable(_TEXT),
        "reason": Nullable(_TEXT),
        "log": _TEXT,
        "simulations": Keys(_SIMULATIONS),
        "samples": Keys({"received": _COUNT, "validation": _COUNT}),
        "batches": Keys({"per_trainer": Items(_COUNT)}),
        "bytes": _COUNT,
        "seconds": _NUMBER,
        "training": _TRAINING,
        "lost_groups": _COUNT,
        "retries": Items(_ANY),
        "run_again": _COUNT,
        **_CHANGES,
        "loaded": Keys(_LOADED),
        "record": Keys({"slowed_s": _NUMBER}),
    },
    needs=("status",),
)
PROGRESS = Keys(
    {
        "simulations": Keys(_SIMULATIONS, needs=("requested", "running", "complete")),
        "samples": Keys(
            {"received": _COUNT, "per_second": _NUMBER, "validation": _COUNT}, needs=("received", "per_second")
        ),
        "trainers": Items(_TEXT),
        "batches": Items(_COUNT),
        "fill": Items(_NUMBER),
        "capacity": _COUNT,
        "capacity_in_bytes": _FLAG,
        "bytes": _COUNT,
        "report": Values(_VALUE),
        "training": _TRAINING,
        "seconds": _NUMBER,
        **_CHANGES,
        "loaded": Keys(_LOADED, together=("epoch", "samples", "per_second", "batches", "wait_s")),
    },
    needs=("simulations", "samples", "batches", "fill", "report", "seconds"),
    equal=("batches", "fill", "trainers"),
)
METRICS = Keys(
    {
        "time": _NUMBER,
        "seconds": _NUMBER,
        "received": Items(_COUNT, least=1),
        "drawn": Items(_COUNT),
        "fill": Items(_NUMBER),
        "waited_s": Items(_NUMBER),
        "simulations": Keys(_SIMULATIONS),
        "groups": Keys(
            {
                **dict.fromkeys(("compute_s", "room_s", "next_s", "start_s"), _NUMBER),
                "step_s": Items(_NUMBER),
                "slowest": Items(_GROUP_STEP),
            }
        ),
        "report": Values(_VALUE),
        "loaded": Keys({"samples": Items(_COUNT), "wait_s": Items(_NUMBER)}, equal=("samples", "wait_s")),
    },
    needs=("seconds", "received", "drawn", "fill", "waited_s"),
    equal=("received", "drawn", "fill", "waited_s"),
)
_ANY_EVENT: dict[str, Shape] = {
    "time": _NUMBER,
    "event": _TEXT,
    **dict.fromkeys(("simulation", "trainer"), _INDEX),
    **dict.fromkeys(("group", "loader"), Nullable(_INDEX)),
    "steps": _COUNT,
    **dict.fromkeys(("compute_s", "room_s", "next_s", "start_s"), _NUMBER),
}
_NEEDS = ("time", "event")
EVENT = Variants(
    "event",
    {
        "start": Keys({**_ANY_EVENT, "groups": _INDEX}, _NEEDS),
        "set_aside": Keys(_ANY_EVENT, (*_NEEDS, "simulation")),
    },
    Keys(_ANY_EVENT, _NEEDS),
)
MACHINE = Keys({"host": _TEXT, "memory_bytes": _COUNT, "gpus": Items(_TEXT), "packages": Values(_ANY)})
_SECTION = Nullable(Values(_ANY))
JOB = Keys(
    {
        "trainers": Nullable(Keys({"ranks_per_replica": _INDEX})),
        "solvers": Nullable(
            Keys(
                {
                    **dict.fromkeys(("groups", "ranks_per_group"), Nullable(_INDEX)),
                    "carried": Nullable(Keys({"ranks": Nullable(_INDEX)})),
                }
            )
        ),
        "loaders": _SECTION,
        "parameters": Nullable(Keys({"space": Nullable(Values(Kind("an axis of parameters", _is_axis)))})),
        "fields": Nullable(Values(Keys({"shape": Items(_ANY)}))),
        "buffer": _SECTION,
    }
)
"""The job file of a run; `mpidata run` checks it fully, but a report needs only these types."""


def read_document(path: Path, shape: Shape) -> tuple[dict[str, Any], str]:
    """Read a document; returns its object, empty if it is missing or ignored, and why it is ignored, else ""."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}, ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}, ignored(path, "it is not a JSON document")
    clause = shape.fault(found)
    return ({}, ignored(path, clause)) if clause is not None else (found, "")


def ignored(what: object, clause: str) -> str:
    """Return the sentence that a file is ignored."""
    return f"{what} is ignored: {clause}. Restore the file, or use the version of mpidata that wrote it."


class Lines:
    """Reads a file of JSON objects, one a line; ignores lines of other types, and incomplete ones.

    Parameters
    ----------
    path : Path
        The file; may be missing.
    shape : Shape
        Of each line.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self._path, self._shape = path, shape
        self._seen = self._ignored = 0
        self._first = ""

    @property
    def problem(self) -> str:
        """Why lines read so far are ignored; "" if none is, except incomplete ones, which a killed process leaves."""
        others = {0: "", 1: "", 2: " So is another line of it."}
        return self._first + others.get(self._ignored, f" So are {self._ignored - 1} other lines of it.")

    def read(self) -> Iterator[dict[str, Any]]:
        """Read the whole file."""
        with contextlib.suppress(OSError), open(self._path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if (found := self.parse(line)) is not None:
                    yield found

    def parse(self, line: str) -> dict[str, Any] | None:
        """Return the object of the next line; None if it is ignored."""
        self._seen += 1
        try:
            found: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError):
            return None
        clause = self._shape.fault(found)
        if clause is None:
            return found
        self._ignored += 1
        self._first = self._first or ignored(f"Line {self._seen} of {self._path}", clause)
        return None
