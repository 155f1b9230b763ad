"""`trainers`, `solvers` and `launch`: what runs, and on how many ranks."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator
from typing_extensions import Self

from mpidata.config.base import Count, Key, Model, Natural, Positive, Problem, Text, idle_key, refuse

__all__ = ["Launch", "Solvers", "Trainers", "is_object_name", "object_name"]

_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_object_name(value: str) -> bool:
    """Whether a text is of the form `module:name`."""
    return _OBJECT.fullmatch(value) is not None


def object_name(value: str) -> str:
    """Refuse a text that is not of the form `module:name`."""
    if not is_object_name(value):
        refuse([((), f'{{key}} is {value!r}. Write it as "module:name", for instance "heat:simulate".')])
    return value


def _unavailable(*refused: object) -> AfterValidator:
    """Refuse values of the design that this version cannot honour."""

    def check(value: Any) -> Any:
        if value in refused:
            refuse([((), f"{{key}} is {value!r}, which is not available in this version. Remove the key.")])
        return value

    return AfterValidator(check)


def _no_spares(value: int) -> int:
    if value:
        refuse([((), f"{{key}} is {value}, and spares are not available in this version. Remove the key.")])
    return value


def _arguments(value: Any) -> Any:
    if isinstance(value, str):
        arguments = ", ".join(value.split())
        refuse([((), f"{{key}} is the text {value!r}. Write a list with one text for each argument: [{arguments}].")])
    return tuple(value) if isinstance(value, list) else value


def _printable(arguments: tuple[str, ...]) -> tuple[str, ...]:
    bad = [i for i, argument in enumerate(arguments) if "\n" in argument or "\0" in argument]
    refuse(((i,), f"{{key}} is {arguments[i]!r}. An argument cannot hold a newline or a NUL; remove it.") for i in bad)
    return arguments


Arguments = Annotated[
    tuple[Text, ...],
    BeforeValidator(_arguments),
    AfterValidator(_printable),
    Key(min_length=1, json_schema_extra={"kind": "list of texts"}),
]


class Trainers(Model):
    """The ranks that train, and what they run."""

    ranks: Count = Key(
        default=1, description="Number of trainer ranks (one process each, one GPU each where there are any)."
    )
    program: Arguments = Key(
        description="The training script and its arguments, executable first. An ordinary script, which uses "
        "`mpidata.MPIStreamDataset`. `python` means the Python that runs mpidata; other names are looked for in the "
        "job file's folder, then on PATH. It runs in the job file's folder.",
        examples=["[python, train.py]"],
    )


class Solvers(Model):
    """The groups of ranks that simulate, and what they run. Exactly one of `program` and `function` is given."""

    groups: Count = Key(default=1, description="Number of solver groups: simulations that run at once.")
    ranks_per_group: Count = Key(default=1, description="Number of ranks that run one simulation together.")
    program: Arguments | None = Key(
        default=None,
        description="An executable linked with libmpidata (or a Python script that uses `mpidata.solver`) and its "
        "arguments. Looked for and run as `trainers.program`.",
        examples=["[./heat2d]"],
        json_schema_extra={"kind": "list of texts"},
    )
    function: Annotated[Text, AfterValidator(object_name)] | None = Key(
        default=None,
        description="Instead of `program`: a Python generator function, written `module:function`, importable from the "
        "job file's folder. It gets the parameters by name and yields `{field: array}` or `(time, {field: array})`. "
        "With an argument `group`, the communicator, it runs on all ranks of its group, else on the first one.",
        examples=['"heat:simulate"'],
    )
    window: Annotated[Count, Key(le=1024)] = Key(
        default=4,
        description="Samples of one solver rank that may be under way to the trainers before the solver waits. Where "
        "samples are small (up to 64 KB), messages, which several samples of a fast solver share (up to 256 KB).",
    )
    start: Annotated[Literal["split", "spawn"], _unavailable("spawn")] = Key(
        default="split",
        description="`split`: all ranks start together. `spawn` (solver groups start later) is not available in this "
        "version.",
    )
    lifetime: Annotated[Literal["pool", "simulation"], _unavailable("simulation")] = Key(
        default="pool",
        description="`pool`: a group runs simulation after simulation. `simulation` (a fresh start for each) is not "
        "available in this version.",
    )
    spares: Annotated[Natural, AfterValidator(_no_spares)] = Key(
        default=0, description="Groups kept in reserve for lost ones. More than 0 is not available in this version."
    )
    retries: Natural = idle_key(
        2,
        "Further tries of one simulation.",
        instead="a simulation that its solver gives up is not tried again, and a solver that dies ends the job",
    )
    timeout_s: Positive = idle_key(
        60.0,
        "Silence in seconds after which a group is declared lost.",
        instead="a group that falls silent is waited for without limit",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        problems: list[Problem] = []
        if self.program is None and self.function is None:
            problems.append(
                ((), "missing key 'solvers.program'. Add it, for instance 'program: [./heat2d]', or 'function:'.")
            )
        if self.program is not None and self.function is not None:
            problems.append(
                (("function",), "'solvers.program' and 'solvers.function' are both given. Remove one of them.")
            )
        refuse(problems)
        return self


class Launch(Model):
    """How the job is started."""

    with_: Literal["auto", "mpirun"] = Key(
        default="auto", alias="with", description="What starts the ranks: `mpirun`, or `auto`, which chooses by itself."
    )
