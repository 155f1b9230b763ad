"""`parameters`: the simulations of the ensemble."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, JsonValue, Strict, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from mpidata.config.base import (
    MOST,
    Boolean,
    Count,
    Key,
    Model,
    Natural,
    Number,
    Positive,
    Problem,
    Text,
    fixed_key,
    free_key,
    refuse,
)
from mpidata.config.data import identifier
from mpidata.config.programs import object_name
from mpidata.native import constants

__all__ = [
    "DEPRECATED",
    "LEARNING",
    "SAMPLERS",
    "WEIGHT",
    "AdaptiveKeys",
    "BreedKeys",
    "Interval",
    "Parameters",
    "Points",
    "PowerKeys",
    "check_name",
]

_RANGES = ("uniform", "latin_hypercube", "halton", "sobol")
LEARNING = ("adaptive", "breed", "power")
DEPRECATED = ("breed", "power")  # these do not know their density
WEIGHT = "weight"
SAMPLERS = (*_RANGES, "grid", "file", *LEARNING)
_Number = TypeVar("_Number", int, float)


def _pair(value: Any) -> Any:
    if isinstance(value, list) and len(value) != 2:
        refuse([((), f"{{key}} has {len(value)} numbers. Give two: [low, high].")])
    return tuple(value) if isinstance(value, list) else value


def _ordered(pair: tuple[_Number, _Number]) -> tuple[_Number, _Number]:
    if pair[0] >= pair[1]:
        refuse([((), f"{{key}} is {list(pair)}. The first number must be less than the second: [low, high].")])
    return pair


def _distinct(values: tuple[float | str, ...]) -> tuple[float | str, ...]:
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    refuse(((), f"{{key}} has the value {value} twice. Remove one of them.") for value in twice[:1])
    texts = [value for value in values if isinstance(value, str)]
    if texts and len(texts) < len(values):
        number = next(value for value in values if not isinstance(value, str))
        refuse([((), f"{{key}} has both the text {texts[0]!r} and the number {number}. Give only numbers, or texts.")])
    return values


def _point(value: Any) -> float | str:
    """Keep whole numbers, which programs get without a decimal point, and texts unchanged."""
    if isinstance(value, str):
        wrong = _wrong_text(value)
        refuse([((), f"{{key}} is {value!r:.100}, {wrong}")] if wrong else [])
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
        fix = f' A text is quoted: "{shown}".' if isinstance(value, bool | None) else ""
        refuse([((), f"{{key}} is {shown:.100}. It must be a number or a text.{fix}")])
    with contextlib.suppress(OverflowError):
        if math.isfinite(value):
            return value if abs(value) <= _MOST_WHOLE else float(value)
    refuse([((), f"{{key}} is {value!r:.100}. It must be a finite number.")])
    raise AssertionError


def _wrong_text(text: str) -> str:
    """Return why a text cannot be the value of a parameter; an empty text if it can."""
    if not text.strip():
        return "an empty text. Give it letters."
    with contextlib.suppress(ValueError):
        float(text)
        return "a text that reads as a number. Remove the quotes; for a text, put a letter before it."
    if set(text) <= set("+-.,_0123456789eE "):
        return "neither a number nor a text with other letters. Write a number with a point, or rename the text."
    if not text.isprintable() or text != text.strip():
        return "but programs cannot get control characters, or blanks at either end. Rename it."
    if len(text.encode()) >= constants.MAX_TEXT:
        return f"a text of {len(text.encode())} bytes. It must have fewer than {constants.MAX_TEXT}. Shorten it."
    return ""


_Point = Annotated[int | float | str, BeforeValidator(_point)]
_List = Annotated[
    tuple[_Point, ...],
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    AfterValidator(_distinct),
    Key(min_length=1),
]
_LIST_KIND: dict[str, JsonValue] = {"kind": "list of numbers, or of texts"}
_MOST_WHOLE = 2**53  # above it, not every whole number is a float64
_Whole = Annotated[int, Strict(), Key(ge=-MOST, le=MOST)]


class Points(Model):
    """The values of a parameter that is not any number of a range. Give exactly one of these keys."""

    integers: Annotated[tuple[_Whole, _Whole], BeforeValidator(_pair), AfterValidator(_ordered)] | None = fixed_key(
        default=None,
        description="Whole numbers from the first to the last one, both included.",
        examples=["[1, 8]"],
        json_schema_extra={"kind": "[low, high]"},
    )
    choices: _List | None = fixed_key(
        default=None,
        description="One of these numbers, or of these [texts](solver.md#text-parameters).",
        examples=["[coarse, fine]"],
        json_schema_extra=_LIST_KIND,
    )
    value: _Point | None = fixed_key(
        default=None,
        description="The same value in all simulations.",
        examples=["3"],
        json_schema_extra={"kind": "number or text"},
    )
    values: _List | None = fixed_key(
        default=None,
        description="Like `choices`, only for `sampler: grid`. Validation simulations get any number between the "
        "smallest and the largest.",
        examples=["[0.01, 0.05, 0.1]"],
        json_schema_extra=_LIST_KIND,
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            refuse([((), "{key} must have one key: integers, choices, value or values. For instance: {value: 3}.")])
        return self

    @property
    def _given(self) -> tuple[float | str, ...]:
        return self.choices or self.values or (() if self.value is None else (self.value,))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that are values of the parameter; empty if it is a number."""
        return tuple(value for value in self._given if isinstance(value, str))

    @property
    def all(self) -> Sequence[float]:
        """All possible numbers of the parameter; if it is a text, the indices of the texts in their list."""
        if self.integers is not None:
            return range(self.integers[0], self.integers[1] + 1)
        return range(len(self.texts)) or tuple(value for value in self._given if not isinstance(value, str))

    @property
    def whole(self) -> bool:
        """Whether all these numbers are written as whole ones."""
        return not self.texts and all(isinstance(value, int) for value in self.all)


def _form(value: Any) -> str:
    if value is None:
        return "<any>"
    return "<points>" if isinstance(value, dict | Points) else "<interval>"


def _no_texts(value: Any) -> Any:
    given = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    if given and all(isinstance(one, str) for one in given):
        shown = ", ".join(f"{one}" for one in given)
        form = f"{{value: {value}}}" if isinstance(value, str) else f"{{choices: [{shown}]}}"
        refuse(
            [((), f"{{key}} is {value!r:.200}. A range is two numbers, [low, high]; texts are written {form:.200}.")]
        )
    return value


Interval = Annotated[
    tuple[Number, Number], BeforeValidator(_pair), BeforeValidator(_no_texts), AfterValidator(_ordered)
]
Axis = Annotated[
    Annotated[Interval, Tag("<interval>")] | Annotated[Points, Tag("<points>")] | Annotated[None, Tag("<any>")],
    Discriminator(_form),
]


def _parameter_name(name: str) -> str:
    if name == "simulation":
        refuse([((), "{key}: a parameter cannot be named 'simulation', which is the id of a simulation. Rename it.")])
    return identifier(name)


def check_name(name: str) -> str:
    """Return what is wrong with the name of a parameter; an empty text if nothing is."""
    try:
        _parameter_name(name)
    except PydanticCustomError as error:
        return "".join(sentence for _, sentence in (error.context or {})["problems"]).removeprefix("{key}: ")
    return ""


def _sampler(name: str) -> str:
    return name if name in SAMPLERS or ":" not in name else object_name(name)


_Share = Annotated[float, Strict(), Key(ge=0, le=1)]


class AdaptiveKeys(Model):
    """For `sampler: adaptive`, see [samplers](samplers.md#adaptive)."""

    start: Natural = fixed_key(
        default=50, description="Number of simulations that are drawn first, regardless of their losses."
    )
    uniform: _Share = fixed_key(
        default=0.3,
        description="Share of the other simulations that is uniform: their density is at least this multiple of the "
        "uniform density.",
    )
    sharpness: Positive = fixed_key(
        default=1.5, description="Exponent: the density grows with the power `sharpness` of the loss."
    )
    bound: Annotated[float, Strict(), Key(gt=1, allow_inf_nan=False)] = fixed_key(
        default=5.0,
        description="Upper bound of the part of the density that is not uniform, as a multiple of the uniform density.",
    )
    window: Count = fixed_key(
        default=400, description="Number of simulations, the newest ones, from whose difficulty the density is fitted."
    )


class BreedKeys(Model):
    """For `sampler: breed`, see [samplers](samplers.md#breed-and-power)."""

    window: Count = fixed_key(default=200, description="Number of simulations, the newest ones, that may be parents.")
    sigma: Annotated[float, Strict(), Key(gt=0, le=1)] = fixed_key(
        default=0.1, description="Standard deviation of children around their parent, as a fraction of each range."
    )
    start: _Share = fixed_key(
        default=0.1,
        description="Fraction of simulations that are bred at first, when losses are known; the others are uniform.",
    )
    end: _Share = fixed_key(default=0.9, description="Fraction of simulations that are bred at the end.")
    breakpoint: Count = fixed_key(
        default=200, description="Number of simulations after which the fraction reaches `end`."
    )


class PowerKeys(Model):
    """For `sampler: power`, see [samplers](samplers.md#breed-and-power)."""

    window: Count = fixed_key(
        default=500, description="Number of simulations, the newest ones, from which losses are estimated."
    )
    candidates: Annotated[Count, Key(le=100_000)] = fixed_key(
        default=1000,
        description="Number of candidates among which each generation is chosen. If the generation is larger, its "
        "size counts.",
    )
    exponent: Positive = fixed_key(
        default=2.0,
        description="Exponent of the estimated loss: 0 would be uniform, and a large one chooses only the worst "
        "candidates.",
    )


class Parameters(Model):
    """The parameters of the simulations, and how their values are drawn."""

    count: Count | None = fixed_key(
        default=None,
        description="Number of simulations to train on. Required, with two exceptions. `sampler: grid` runs every "
        "combination of its values, and this key has no effect. With `sampler: file` the default is all rows that are "
        "not for validation.",
        examples=["200"],
    )
    sampler: Annotated[Text, AfterValidator(_sampler)] = fixed_key(
        default="uniform",
        description="How values are drawn: `uniform` (independent), `latin_hypercube`, `halton`, `sobol` (these "
        "three cover the space more evenly), `grid` (all combinations), `file` (rows of a table), or `adaptive` "
        "(where the model is wrong: [samplers](samplers.md)). `breed` and `power` are deprecated. Or a Python class, "
        "written `module:Class`, that can be imported from the job file's folder. The class is constructed as "
        "`Class(space=..., seed=...)`, and its method `sample(count)` returns an array of shape (count, number of "
        "parameters). If it has a method `observe`, it learns from the losses: see [samplers](samplers.md).",
        json_schema_extra={
            "kind": f"one of {', '.join(SAMPLERS)}, or module:Class",
        },
    )
    generation: Count | None = fixed_key(
        default=None,
        description="For samplers that learn, otherwise without effect: number of simulations drawn at a time.",
        examples=["16"],
        json_schema_extra={"default": "`solvers.groups`"},
    )
    learner_rank: Boolean = free_key(
        default=False,
        description="For samplers that learn: whether the sampler runs on a rank of its own, "
        "[the learner](loop.md#learners), instead of in a thread of the scheduler.",
    )
    learner_spares: Natural = free_key(
        default=0,
        description="With `learner_rank`: number of ranks that wait to replace a learner that dies, if the launcher "
        "lets the job continue.",
    )
    weights: Boolean = fixed_key(
        default=False,
        description="Whether batches have [`weight`](samplers.md#weights). With these factors, losses are as if all "
        "simulations were drawn uniformly.",
    )
    adaptive: AdaptiveKeys | None = fixed_key(
        default=None,
        description="For `sampler: adaptive`, otherwise without effect.",
        examples=["{start: 100, bound: 3}"],
    )
    breed: BreedKeys | None = fixed_key(default=None, description="For `sampler: breed`, which is deprecated.")
    power: PowerKeys | None = fixed_key(default=None, description="For `sampler: power`, which is deprecated.")
    space: Annotated[
        dict[Annotated[str, AfterValidator(_parameter_name)], Axis],
        Key(json_schema_extra={"kind": "mapping from name to [low, high] or a mapping"}),
    ] = fixed_key(
        default_factory=dict,
        description="The parameters, in the order in which samples have them. Each has a range `[low, high]`, whole "
        "numbers (`{integers: [1, 8]}`), a few values, numbers or texts (`{choices: [...]}`), or one value "
        "(`{value: 3}`). For `sampler: grid`, each has the list of its values, `{values: [...]}`, or one of these "
        "three mappings. With `sampler: file` the key is optional: without it all columns are parameters, with it "
        "only the named ones. A column may have a range or one of these mappings, against which its values are "
        "checked; a parameter with `value` needs no column.",
        examples=["{alpha: [0.01, 0.1], left: [100, 500]}"],
    )
    path: Text | None = fixed_key(
        default=None,
        description="For `sampler: file`, otherwise without effect: a CSV file whose first line has the names of the "
        "parameters, or an HDF5 file with one 1-D dataset for each parameter, or with one 2-D dataset `parameters` "
        "that has an attribute `names`. Each row is a simulation; the last `validation.count` rows are for validation.",
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
        if self.weights and self.sampler in DEPRECATED:
            said = f"'parameters.weights' is true, but 'sampler: {self.sampler}' does not know its density"
            yield ("weights",), f"{said}. Use adaptive, or remove it."
        if self.weights and WEIGHT in self.space:
            said = f"'parameters.space.{WEIGHT}': 'parameters.weights' adds this to each simulation"
            yield ("space", WEIGHT), f"{said}. Rename the parameter."
        if self.learner_rank and self.sampler in SAMPLERS and self.sampler not in LEARNING:
            said = f"'parameters.learner_rank' is true, but 'sampler: {self.sampler}' does not learn"
            yield ("learner_rank",), f"{said}. Remove it, or use a sampler that does."
        yield from self._axis_problems()

    def _axis_problems(self) -> Iterator[Problem]:
        for name, axis in self.space.items():
            key = f"'parameters.space.{name}'"
            of_grid = isinstance(axis, Points) and axis.values is not None
            if self.sampler == "grid" and not isinstance(axis, Points):
                yield ("space", name), f"{key} has no list of values. Write it as {{values: [...]}} for a grid."
            elif self.sampler in (*_RANGES, *LEARNING) and (axis is None or of_grid):
                form = "{choices: [...]}" if isinstance(axis, Points) and axis.texts else "[low, high]"
                yield ("space", name), f"{key} has no range. Write it as {form} for {self.sampler}."
            elif self.sampler in LEARNING and isinstance(axis, Points) and len(axis.texts) > 1:
                way = "Use another sampler, or number them: {integers: [0, 1]}"
                yield ("space", name), f"{key} has texts, which {self.sampler} cannot vary. {way}."
            elif self.sampler == "file" and of_grid:
                yield ("space", name), f"{key} has a list of values, which is for a grid. Write [low, high] or nothing."

    @property
    def grid_size(self) -> int:
        """Number of points of a grid."""
        return math.prod(len(axis.all) for axis in self.space.values() if isinstance(axis, Points))
