"""`parameters`: which simulations the ensemble has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from mpidata.config.base import Count, Key, Model, Number, Problem, Text, refuse
from mpidata.config.data import identifier
from mpidata.config.programs import object_name

__all__ = ["SAMPLERS", "Interval", "Parameters", "Values", "check_name"]

_RANGES = ("uniform", "latin_hypercube", "halton", "sobol")
SAMPLERS = (*_RANGES, "grid", "file")


def _pair(value: Any) -> Any:
    if isinstance(value, list) and len(value) != 2:
        refuse([((), f"{{key}} has {len(value)} numbers. Give two: [low, high].")])
    return tuple(value) if isinstance(value, list) else value


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] >= pair[1]:
        refuse([((), f"{{key}} is {list(pair)}. The first number must be less than the second: [low, high].")])
    return pair


def _distinct(values: tuple[float, ...]) -> tuple[float, ...]:
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    refuse(((), f"{{key}} has the value {value} twice. Remove one of them.") for value in twice[:1])
    return values


class Values(Model):
    """The values of one parameter of a grid."""

    values: Annotated[
        tuple[Number, ...],
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
        AfterValidator(_distinct),
        Key(min_length=1, json_schema_extra={"kind": "list of numbers"}),
    ] = Key(description="The values that the parameter takes.", examples=["[0.01, 0.05, 0.1]"])


def _form(value: Any) -> str:
    if value is None:
        return "<any>"
    return "<values>" if isinstance(value, dict | Values) else "<interval>"


Interval = Annotated[tuple[Number, Number], BeforeValidator(_pair), AfterValidator(_ordered)]
Axis = Annotated[
    Annotated[Interval, Tag("<interval>")] | Annotated[Values, Tag("<values>")] | Annotated[None, Tag("<any>")],
    Discriminator(_form),
]


def _parameter_name(name: str) -> str:
    if name == "simulation":
        refuse([((), "{key}: a parameter cannot be named 'simulation', which is the id of a simulation. Rename it.")])
    return identifier(name)


def check_name(name: str) -> str:
    """Say what is wrong with the name of a parameter; an empty text if nothing is."""
    try:
        _parameter_name(name)
    except PydanticCustomError as error:
        return "".join(sentence for _, sentence in (error.context or {})["problems"]).removeprefix("{key}: ")
    return ""


def _sampler(name: str) -> str:
    return name if name in SAMPLERS or ":" not in name else object_name(name)


class Parameters(Model):
    """The parameters of the simulations, and how their values are chosen."""

    count: Count | None = Key(
        default=None,
        description="Number of simulations to train on. Required, with two exceptions: `sampler: grid` "
        "runs every combination of its values, and this key has no effect; with `sampler: "
        "file` the default is all rows that are not for validation.",
        examples=["200"],
    )
    sampler: Annotated[Text, AfterValidator(_sampler)] = Key(
        default="uniform",
        description="How values are drawn: `uniform` (independent), `latin_hypercube`, `halton`, `sobol` "
        "(these three cover the space more evenly), `grid` (all combinations), `file` (rows "
        "of a table), or a Python class, written `module:Class`, that can be imported from "
        "the job file's folder. The class is constructed as `Class(space=..., seed=...)`, and "
        "its method `sample(count)` returns an array of shape (count, number of parameters).",
        json_schema_extra={
            "kind": "one of uniform, latin_hypercube, halton, sobol, grid, file, or module:Class",
        },
    )
    space: Annotated[
        dict[Annotated[str, AfterValidator(_parameter_name)], Axis],
        Key(json_schema_extra={"kind": "mapping from name to [low, high] or {values: [...]}"}),
    ] = Key(
        default_factory=dict,
        description="The parameters, in the order in which samples have them, each with its range "
        "`[low, high]`. For `sampler: grid`, each has the list of its values instead, "
        "`{values: [...]}`. With `sampler: file` the key may be left out (then all columns "
        "are parameters), or it names the columns to use; a column may have a range, "
        "against which its values are checked.",
        examples=["{alpha: [0.01, 0.1], left: [100, 500]}"],
    )
    path: Text | None = Key(
        default=None,
        description="For `sampler: file`, else without effect: a CSV file whose first line has the "
        "names of the parameters, or an HDF5 file with one 1-D dataset for each parameter, "
        "or with one 2-D dataset `parameters` that has an attribute `names`. Each row is a "
        "simulation; the last `validation.count` rows are for validation.",
        examples=["design.csv"],
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse(self._problems())
        return self

    def _problems(self) -> Iterator[Problem]:
        if self.sampler not in SAMPLERS and ":" not in self.sampler:
            return  # reported by mpidata.config.load, with a suggestion
        if self.sampler != "file":
            if not self.space:
                yield (), "missing key 'parameters.space'. Add it, for instance 'space: {alpha: [0.01, 0.1]}'."
        elif self.path is None:
            yield (), "missing key 'parameters.path'. Add the table to read, for instance 'path: design.csv'."
        if self.sampler not in ("grid", "file") and self.count is None:
            yield (), "missing key 'parameters.count'. Add the number of simulations, for instance 'count: 200'."
        yield from self._axis_problems()

    def _axis_problems(self) -> Iterator[Problem]:
        for name, axis in self.space.items():
            key = f"'parameters.space.{name}'"
            if self.sampler == "grid" and not isinstance(axis, Values):
                yield ("space", name), f"{key} has no list of values. Write it as {{values: [...]}} for a grid."
            elif self.sampler in _RANGES and not isinstance(axis, tuple):
                yield ("space", name), f"{key} has no range. Write it as [low, high] for {self.sampler}."
            elif self.sampler == "file" and isinstance(axis, Values):
                yield ("space", name), f"{key} has a list of values, which is for a grid. Write [low, high] or nothing."

    @property
    def grid_size(self) -> int:
        """Number of points of a grid."""
        return math.prod(len(axis.values) for axis in self.space.values() if isinstance(axis, Values))
