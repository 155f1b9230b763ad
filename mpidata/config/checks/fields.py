"""Checks of the fields of a job file against one another, and of lengths that differ between samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mpidata.config.base import Problem
from mpidata.config.parameters import WEIGHT
from mpidata.config.sentences import suggestion

__all__ = ["check_fields"]

_TAKEN = ("time", "step", "simulation", "parameters")
_INDICES = ("int32", "int64")


def check_fields(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find ambiguous names, lengths that no field has, and what cannot be combined with lengths."""
    fields, lengths = sections.get("fields"), sections.get("lengths", {})
    if not fields:
        return
    used = dict.fromkeys(field.length for field in fields.values() if field.length is not None)
    yield from _clashes(fields, used)
    parameters = sections.get("parameters")
    if WEIGHT in fields and parameters is not None and parameters.weights:
        said = f"'fields.{WEIGHT}': 'parameters.weights' adds {WEIGHT!r} to a batch"
        yield ("fields", WEIGHT), f"{said}. Rename the field."
    for name in lengths:
        if name not in used:
            fix = suggestion(name, used) or "Write it into the shape of a field, or remove it."
            yield ("lengths", name), f"'lengths.{name}': no field has this length. {fix}"
    for name, field in fields.items():
        yield from _index(name, field, used)
    yield from _constants(fields)
    solvers = sections.get("solvers")
    for length in used if solvers is not None and solvers.carried is not None else ():
        if length not in lengths or lengths[length].at_most is None:
            fix = f"'lengths.{length}.at_most' is missing: the memory of a carried program is fixed. Give it."
            yield ("lengths",), fix


def _clashes(fields: Mapping[str, Any], used: Mapping[str, None]) -> Iterator[Problem]:
    made = {f"{length}_offsets": f"the offsets of {length!r}" for length in used}
    made |= {f"{name}_given": f"whether {name!r} was put" for name, field in fields.items() if field.optional}
    meant = {name: "what every sample has" for name in _TAKEN} | {length: "a length" for length in used} | made
    for name in fields:
        if name in meant and name not in _TAKEN:  # those have been refused already
            yield (
                ("fields", name),
                f"'fields.{name}': in a batch {name!r} is {meant[name]}. Rename the field or the length.",
            )
    for length in used:
        if length in made:
            field = next(name for name, field in fields.items() if field.length == length)
            said = f"the length {length!r} is {made[length]} in a batch"
            yield ("fields", field, "shape"), f"'fields.{field}.shape': {said}. Rename one of the lengths."


def _index(name: str, field: Any, used: Mapping[str, None]) -> Iterator[Problem]:
    at, key = ("fields", name, "index"), f"'fields.{name}.index'"
    if field.index is None:
        if field.base:
            yield ("fields", name, "base"), f"'fields.{name}.base' is only for indices. Give 'index', or remove it."
        return
    if field.index not in used:
        fix = suggestion(field.index, used) or "Name a length that is in the shape of a field."
        yield at, f"{key} is {field.index!r}, which is not a length of any field. {fix}"
    if field.dtype not in _INDICES:
        yield at, f"{key}: indices are {' or '.join(_INDICES)}, but the field is {field.dtype}. Change 'dtype'."
    if field.length is None:
        yield at, f"{key}: the field's own shape {list(field.shape)} has no length. Add one, or remove 'index'."


def _constants(fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Find impossible fields among those that are put once per simulation."""
    constants = {name: field for name, field in fields.items() if field.per == "simulation"}
    if constants and len(constants) == len(fields):
        name = next(iter(constants))
        fix = "Remove 'per' from a field that is put in each step."
        yield (
            ("fields", name, "per"),
            f"'fields.{name}.per': all fields are put once per simulation, none in each step. {fix}",
        )
    lengths = {field.length for field in constants.values()}
    for name, field in constants.items():
        if field.index is not None and field.index not in lengths:
            said = f"'fields.{name}' is put once per simulation, but is an index into {field.index!r}, put in each step"
            fix = "Give a field with that length 'per: simulation', or remove 'per'."
            yield ("fields", name, "per"), f"{said}. {fix}"
