"""The types of the documents of a run folder as far as mpidata uses them; other keys may have any value."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter
from pydantic_core import PydanticCustomError
from typing_extensions import Required, TypedDict

__all__ = ["EVENT", "JOB", "MACHINE", "METRICS", "PROGRESS", "SUMMARY"]

# The bound of times, shares and rates: sums of them, in NumPy as well, stay exact enough.
_Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
_Value = Annotated[float, Field(allow_inf_nan=False)] | None
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Index = Annotated[int, Field(ge=0, lt=2**31)]


def _equally_long(*names: str) -> AfterValidator:
    """Refuse an object whose lists under these keys, as far as they exist, differ in length."""

    def check(value: Any) -> Any:
        if len({len(value[name]) for name in names if name in value}) > 1:
            raise PydanticCustomError("lengths", f"its lists {', '.join(names)} should be equally long")
        return value

    return AfterValidator(check)


class _Simulations(TypedDict, total=False):
    requested: _Count
    running: _Count
    complete: _Count
    failed: _Count
    cancelled: _Count


class _Training(TypedDict, total=False):
    first: _Value
    last: _Value


class _Changes(TypedDict, total=False):
    lost_trainers: list[_Index]
    joined_trainers: list[_Index]
    retired_trainers: list[_Index]


class _Reading(TypedDict):
    parts: _Count
    counted: _Count
    read: _Count


class _Loaded(TypedDict, total=False):
    epoch: _Count
    samples: _Count
    per_second: _Number
    batches: list[_Count]
    wait_s: list[_Number]
    reading: _Reading


def _full_or_empty(loaded: _Loaded) -> _Loaded:
    missing = [name for name in _Loaded.__annotations__ if name != "reading" and name not in loaded]
    if loaded and missing:
        raise PydanticCustomError("incomplete", f"it lacks {missing[0]}")
    return loaded


class _Samples(TypedDict, total=False):
    received: _Count
    per_second: _Number
    validation: _Count


class _Batches(TypedDict, total=False):
    per_trainer: list[_Count]


class _Record(TypedDict, total=False):
    slowed_s: _Number


class _Summary(_Changes, total=False):
    status: Required[str]
    error: str | None
    reason: str | None
    log: str
    simulations: _Simulations
    samples: _Samples
    batches: _Batches
    bytes: _Count
    seconds: _Number
    training: dict[str, _Training]
    lost_groups: _Count
    retries: list[Any]
    run_again: _Count
    loaded: _Loaded
    record: _Record


class _SimulationsNow(TypedDict, total=False):
    requested: Required[_Count]
    running: Required[_Count]
    complete: Required[_Count]
    failed: _Count
    cancelled: _Count


class _SamplesNow(TypedDict, total=False):
    received: Required[_Count]
    per_second: Required[_Number]
    validation: _Count


class _Progress(_Changes, total=False):
    simulations: Required[_SimulationsNow]
    samples: Required[_SamplesNow]
    trainers: list[str]
    batches: Required[list[_Count]]
    fill: Required[list[_Number]]
    capacity: _Count
    capacity_in_bytes: bool
    bytes: _Count
    report: Required[dict[str, _Value]]
    training: dict[str, _Training]
    seconds: Required[_Number]
    loaded: Annotated[_Loaded, AfterValidator(_full_or_empty)]


class _Groups(TypedDict, total=False):
    compute_s: _Number
    room_s: _Number
    next_s: _Number
    start_s: _Number
    step_s: list[_Number]
    slowest: list[Annotated[list[_Number], Field(min_length=2, max_length=2)]]  # a group with its seconds


class _LoadedSince(TypedDict, total=False):
    samples: list[_Count]
    wait_s: list[_Number]


class _Metrics(TypedDict, total=False):
    time: _Number
    seconds: Required[_Number]
    received: Required[Annotated[list[_Count], Field(min_length=1)]]
    drawn: Required[list[_Count]]
    fill: Required[list[_Number]]
    waited_s: Required[list[_Number]]
    simulations: _Simulations
    groups: _Groups
    report: dict[str, _Value]
    loaded: Annotated[_LoadedSince, _equally_long("samples", "wait_s")]


class _Event(TypedDict, total=False):
    time: Required[_Number]
    event: Required[str]
    trainer: _Index
    group: _Index | None
    loader: _Index | None
    steps: _Count
    compute_s: _Number
    room_s: _Number
    next_s: _Number
    start_s: _Number


class _OtherEvent(_Event, total=False):
    simulation: _Index


class _Start(_OtherEvent, total=False):
    groups: _Index


class _SetAside(_Event):
    simulation: _Index


def _kind_of(event: Any) -> str:
    kind = event.get("event") if isinstance(event, dict) else None
    return f"<{kind}>" if kind in ("start", "set_aside") else "<other>"


class _Machine(TypedDict, total=False):
    host: str
    memory_bytes: _Count
    gpus: list[str]
    packages: dict[str, Any]


def _axis(value: Any) -> Any:
    """Refuse what is not an axis of a parameter space: what JSON can have, with lists of choices."""
    try:
        json.dumps(value)
        lists = [value.get(name) or [] for name in ("choices", "values")] if isinstance(value, dict) else []
        if all(isinstance(one, list) for one in lists):
            return value
    except (TypeError, ValueError, RecursionError):
        pass
    raise PydanticCustomError("axis", "it should be an axis of parameters")


class _Trainers(TypedDict, total=False):
    ranks_per_replica: _Index


class _Carried(TypedDict, total=False):
    ranks: _Index | None


class _Solvers(TypedDict, total=False):
    groups: _Index | None
    ranks_per_group: _Index | None
    carried: _Carried | None


class _Parameters(TypedDict, total=False):
    space: dict[str, Annotated[Any, AfterValidator(_axis)]] | None


class _Entry(TypedDict, total=False):
    shape: list[Any]


class _Job(TypedDict, total=False):
    trainers: _Trainers | None
    solvers: _Solvers | None
    loaders: dict[str, Any] | None
    parameters: _Parameters | None
    fields: dict[str, _Entry] | None
    buffer: dict[str, Any] | None


# Tags are in angle brackets, as the location of an error has them too, and they are no keys.
SUMMARY: TypeAdapter[Any] = TypeAdapter(_Summary)
PROGRESS: TypeAdapter[Any] = TypeAdapter(Annotated[_Progress, _equally_long("batches", "fill", "trainers")])
METRICS: TypeAdapter[Any] = TypeAdapter(Annotated[_Metrics, _equally_long("received", "drawn", "fill", "waited_s")])
EVENT: TypeAdapter[Any] = TypeAdapter(
    Annotated[
        Annotated[_Start, Tag("<start>")]
        | Annotated[_SetAside, Tag("<set_aside>")]
        | Annotated[_OtherEvent, Tag("<other>")],
        Discriminator(_kind_of),
    ]
)
MACHINE: TypeAdapter[Any] = TypeAdapter(_Machine)
JOB: TypeAdapter[Any] = TypeAdapter(_Job)
"""The job file of a run; `mpidata run` checks it fully, but a report needs only these types."""
