"""The lines of a plan: their order, and how they are read, also by `c_api/src/plan_text/plan_reading.c`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from mpidata.errors import MpidataError
from mpidata.native import constants
from mpidata.run.plan.programs import Program
from mpidata.run.plan.samples import Field, Length

__all__ = ["HEADER", "INFERENCE", "LOADERS", "RECORD", "SINGLE", "WHERE_GIVEN", "keys_in", "types_of"]

Types: TypeAlias = "dict[str, Callable[[str], Any]]"
"""By key with one value: the function that converts its text."""

HEADER = "mpidata-plan 1"
SINGLE = tuple(
    "run folder seed start lifetime world trainers groups spares ranks_per_group in_flight retries timeout_s "
    "start_timeout_s join_timeout_s tolerate fault_tolerance simulations validation policy capacity watermark tail "
    "checkpoint attempt checkpoint_every_s checkpoint_keep checkpoint_within_s".split()
)
RECORD = ("record_path", "record_every", "record_when_slow")
LOADERS = tuple(
    "loaders loader_spares loader_start loader_retries loader_timeout_s loader_start_timeout_s loader_tolerate".split()
)
INFERENCE = ("inference", "inference_spares", "inference_timeout_s", "inference_start_timeout_s")
# Keys that are left out if they have their defaults.
WHERE_GIVEN = (
    "carried", "carried_each", "capacity_in_bytes", "repeats", "pinned", "journal", "replay", "samples_window",
    "samples_stride", "samples_run", "statistics", "ranges", "weights", "trainer_spares", "trainers_at_least",
    "trainers_timeout_s", "trainers_exceptions_lose", "servers", "learner", "learner_spares", "ranks_per_replica",
)  # fmt: skip
# By the declared type of a key with one value: the function that converts its text.
_TYPES: dict[Any, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "Path": Path, "Path | None": Path}


def types_of(plan: type) -> Types:
    """Return the keys with one value of a plan's class."""
    return {key.name: _TYPES[key.type] for key in dataclasses.fields(plan) if key.type in _TYPES}


def keys_in(text: str, types: Types) -> dict[str, Any]:
    """Read the keys of a plan; raises MpidataError if it is invalid."""
    lines = text.split("\n")
    if lines[0] != HEADER:
        raise MpidataError(f"The plan begins with {lines[0]!r}, not {HEADER!r}. Use only one version of mpidata.")
    reader = _Reader(types)
    for number, line in enumerate(lines[1:], start=2):
        if line:
            try:
                reader.take(line)
            except ValueError as error:
                message = f"Line {number} of the plan is {line!r}: {error}. Start the job again."
                raise MpidataError(message) from None
    missing = [key for key in SINGLE if key not in reader.single]
    several = {"solver": reader.single.get("groups")}
    several |= {role: reader.single.get(f"{role}s", "0") for role in ("loader", "server")}
    several |= {role: reader.single.get(role, "0") for role in ("inference", "learner")}
    several["mate"] = str(int(reader.single.get("ranks_per_replica", "1")) - 1)
    needed = [role for role in constants.ROLES if several.get(role) != "0"]
    missing += [f"program {role}" for role in needed if role not in reader.programs]
    if missing:
        raise MpidataError(f"The plan lacks {', '.join(missing)}. Start the job again.")
    return {
        **{key: reader.types[key](value) for key, value in reader.single.items()},
        "hosts": tuple(reader.hosts),
        "parameters": tuple(reader.parameters),
        "whole": tuple(reader.whole),
        "texts": reader.texts,
        "fields": tuple(reader.fields),
        "lengths": tuple(reader.lengths),
        "programs": {
            role: Program(tuple(arguments), environment) for role, (arguments, environment) in reader.programs.items()
        },
    }


class _Reader:
    """Collects the lines of a plan."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.single: dict[str, str] = {}
        self.hosts: list[str] = []
        self.parameters: list[str] = []
        self.whole: list[str] = []
        self.texts: dict[str, tuple[str, ...]] = {}
        self.fields: list[Field] = []
        self.lengths: list[Length] = []
        self.programs: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.role = ""

    def take(self, line: str) -> None:
        """Parse a line; raises ValueError if it is invalid."""
        key, _, value = line.partition(" ")
        if key in self.types:
            if key in self.single:
                raise ValueError("duplicate key")
            self.types[key](value)
            self.single[key] = value
        elif key == "host":
            self.hosts.append(value)
        elif key == "parameter":
            self.parameters.append(value)
        elif key == "whole":
            self.whole.append(value)
        elif key == "text":
            name, _, text = value.partition(" ")
            self.texts[name] = (*self.texts.get(name, ()), text)
        elif key == "field":
            name, dtype, ndim, *shape = value.split(" ")
            if int(ndim) != len(shape):
                raise ValueError(f"{len(shape)} extents, not {ndim}")
            named = {length.name for length in self.lengths}
            self.fields.append(Field(name, dtype, tuple(e if e in named else int(e) for e in shape)))
        elif key == "length":
            name, _, most = value.partition(" ")
            self.lengths.append(Length(name, int(most)))
        elif key == "index":
            name, index, base = value.split(" ")
            self._change(name, index=index, base=int(base))
        elif key == "optional":
            self._change(value, optional=True)
        elif key == "constant":
            self._change(value, per_simulation=True)
        elif key == "program":
            if value not in constants.ROLES:
                raise ValueError("unknown role")
            self.role = value
            self.programs[value] = ([], {})
        elif key == "argument" and self.role:
            self.programs[self.role][0].append(value)
        elif key == "environment" and self.role and "=" in value:
            name, _, value = value.partition("=")
            self.programs[self.role][1][name] = value
        else:
            raise ValueError("unknown key")

    def _change(self, name: str, **more: Any) -> None:
        at = [field.name for field in self.fields].index(name)
        self.fields[at] = dataclasses.replace(self.fields[at], **more)
