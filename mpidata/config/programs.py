"""`trainers`, `solvers`, `loaders` and `launch`: what runs, and on how many ranks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator
from typing_extensions import Self

from mpidata.config.base import Count, Key, Model, Natural, Positive, Problem, Text, refuse

__all__ = ["Launch", "Loaders", "Solvers", "Trainers", "find_program", "is_object_name", "object_name"]

_HOST = re.compile(r"[\w.-]+:[1-9]\d{0,5}", re.ASCII)
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_object_name(value: str) -> bool:
    """Whether a text is of the form `module:name`."""
    return _OBJECT.fullmatch(value) is not None


def object_name(value: str) -> str:
    """Refuse a text that is not of the form `module:name`."""
    if not is_object_name(value):
        refuse([((), f'{{key}} is {value!r}. Write it as "module:name", for instance "heat:simulate".')])
    return value


def find_program(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Arguments to start a program with: the executable made absolute where it lies in the job file's folder.

    `python` and `python3` mean the Python that runs mpidata. A name that is no file of the folder is left to PATH.
    """
    first, *rest = program
    if first in ("python", "python3"):
        return (sys.executable, *rest)
    here = folder / first
    if os.path.isfile(here) and ("/" in first or os.access(here, os.X_OK)):
        return (os.path.abspath(here), *rest)
    return tuple(program)


def _host(name: str) -> str:
    if not all(c.isalnum() or c in "._-:[]" for c in name):
        refuse([((), f"{{key}} is {name!r}. Write the name of a host, as mpirun knows it.")])
    return name


def _auto_or_boolean(value: Any) -> Any:
    if value is not True and value is not False and value != "auto":
        refuse([((), f"{{key}} is {value!r}. It must be one of auto, true, false.")])
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


def _hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    problems: list[Problem] = []
    names = [value.rpartition(":")[0] for value in values]
    for i, value in enumerate(values):
        if _HOST.fullmatch(value) is None:
            problems.append(((i,), f"{{key}} is {value!r}. Write the name of a host and how many CPUs: node1:8."))
        elif names[i] in names[:i]:
            problems.append(((i,), f"{{key}} names {names[i]} again. Write each host once, with all its CPUs."))
    refuse(problems)
    return values


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
    per_node: Count | None = Key(
        default=None,
        description="Number of trainers on each node of an allocation that has trainers. Solvers go to the other "
        "nodes, and to these only where the others are full.",
        json_schema_extra={"default": "as many as fit"},
    )
    gpus_per_rank: Natural = Key(
        default=0,
        description="GPUs of each trainer, which `mpidata submit` asks for. A trainer sees all GPUs of its node; the "
        "first of its own is LOCAL_RANK times this number.",
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
    window: Annotated[Count, Key(le=1024)] | None = Key(
        default=None,
        description="Samples of one solver rank that may be under way to the trainers before the solver waits. Where "
        "a rank's parts are small (up to 32 KB), messages, which samples of a fast solver share (up to 256 KB).",
        json_schema_extra={"default": "8, but 4 where 8 of a rank's parts exceed 4 MB"},
    )
    start: Literal["split", "spawn"] = Key(
        default="split",
        description="`split`: all ranks start together, the fast path. `spawn`: the solver groups are started later, "
        "by the running job.",
    )
    lifetime: Literal["pool", "simulation"] = Key(
        default="pool",
        description="`pool`: a group runs simulation after simulation. `simulation` (with `start: spawn`): a fresh "
        "group for each simulation, for a program that can run only once. In the arguments of its program `{name}` "
        "then stands for the value of a parameter and `{simulation}` for the number of the simulation; a literal brace "
        "is doubled.",
    )
    spares: Natural = Key(
        default=0,
        description="Groups that start with the others (`start: split`) and wait to take the place of lost ones. When "
        "there is none left, a new group is started in place of a lost one; with `start: spawn` always, so that it has "
        "no effect there.",
    )
    retries: Natural = Key(
        default=2,
        description="Further tries of a simulation whose group died or fell silent, or whose Python code raised an "
        "exception; and of starting a group. A simulation whose every try failed is set aside; one that its own code "
        "gives up (`mpidata_fail`) at once.",
    )
    timeout_s: Positive = Key(
        default=60.0,
        description="Seconds of silence after which a group is ended as hung: the longest time that a rank may compute "
        "between two calls of libmpidata. Waiting inside a call does not count, nor does the time before the first "
        "step of a simulation, which has `start_timeout_s`.",
    )
    start_timeout_s: Positive | None = Key(
        default=None,
        description="Seconds of silence after which a group is ended as hung before the first step of a simulation: "
        "the longest time that a rank may take to read its mesh or to make its first step.",
        json_schema_extra={"kind": "number, more than 0", "default": "the larger of 600 and `timeout_s`"},
    )
    tolerate: Natural | None = Key(
        default=None,
        description="Number of simulations that may be set aside before the job counts as failed. Without it the job "
        "fails only if the first three to fail on every try do so while none has completed (those that their own code "
        "gives up do not count), or if all are set aside.",
        json_schema_extra={"kind": "whole number, at least 0", "default": "all"},
    )
    hosts: (
        Annotated[
            tuple[Annotated[Text, AfterValidator(_host)], ...],
            BeforeValidator(_arguments),
            Key(min_length=1, json_schema_extra={"kind": "list of texts"}),
        ]
        | None
    ) = Key(
        default=None,
        description="Hosts on which groups that are started later run; without this key MPI chooses.",
        examples=["[node3, node4]"],
        json_schema_extra={"kind": "list of texts"},
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems: list[Problem] = []
        if self.program is None and self.function is None:
            problems.append(
                ((), "missing key 'solvers.program'. Add it, for instance 'program: [./heat2d]', or 'function:'.")
            )
        if self.program is not None and self.function is not None:
            problems.append(
                (("function",), "'solvers.program' and 'solvers.function' are both given. Remove one of them.")
            )
        if self.start == "split" and self.lifetime == "simulation":
            problems.append(
                (
                    ("lifetime",),
                    "'solvers.lifetime' is 'simulation', which needs 'start: spawn'. Add that, or remove it.",
                )
            )
        refuse(problems)
        return self


class Loaders(Model):
    """The ranks that read and prepare data which already exists."""

    ranks: Count = Key(default=1, description="Number of loaders that work at once (one process each).")
    spares: Natural = Key(default=0, description="What `solvers.spares` is for groups.")
    retries: Natural = Key(
        default=2, description="Further tries of work whose loader died or fell silent, and of starting a loader."
    )
    timeout_s: Positive = Key(
        default=60.0, description="Seconds of silence after which a loader is ended as hung: the most for one item."
    )
    start_timeout_s: Positive = Key(
        default=600.0, description="The same while a loader builds a dataset or counts the rows of its files."
    )
    tolerate: Natural = Key(
        default=0,
        description="Number of items that may be left out, as every loader was lost at them, without failing.",
    )
    start: Literal["split", "spawn"] = Key(default="split", description="What `solvers.start` is for groups.")


class Launch(Model):
    """How the job is started."""

    with_: Literal["auto", "mpirun", "srun"] = Key(
        default="auto",
        alias="with",
        description="What starts the ranks: `mpirun`, `srun` (within a Slurm allocation), or `auto`: `srun` in an "
        "allocation where the MPI is MPICH or the job is heterogeneous, else `mpirun`.",
    )
    hosts: Annotated[
        tuple[Text, ...],
        BeforeValidator(_arguments),
        AfterValidator(_hosts),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = Key(
        default=(),
        description="Without Slurm: the hosts to run on, each with the number of its CPUs that the job may use. "
        "Trainers go to the first ones, solvers to those that are left. mpirun must be able to log in there "
        "without a password, and the folder of the job file and mpidata must be there under the same paths.",
        examples=["[node1:8, node2:8]"],
        json_schema_extra={"kind": "list of texts", "default": "this machine"},
    )
    join_timeout_s: Positive = Key(
        default=600.0,
        description="Seconds after the start of a rank within which it must call `mpidata_init`, or create its "
        "`MPIStreamDataset`. One that has not ends the job, as all others wait for it, and says what it was doing. "
        "The usual cause is a solver that [uses MPI_COMM_WORLD](solver.md).",
    )
    host_timeout_s: Annotated[Positive, Key(ge=3.0, le=3600.0)] = Key(
        default=30.0,
        description="Where the job is on several hosts and Open MPI's mpirun starts it: seconds of silence of a host "
        "after which it is lost. The job ends, or goes on without it from its last checkpoint with `--restarts`.",
    )
    options: Annotated[
        tuple[Text, ...],
        BeforeValidator(_arguments),
        AfterValidator(_printable),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = Key(
        default=(),
        description="Further arguments for what starts the ranks, after those of mpidata.",
        examples=["[--mca, pml, ucx]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    fault_tolerance: Annotated[bool | Literal["auto"], BeforeValidator(_auto_or_boolean)] = Key(
        default="auto",
        description="Whether the job outlives the death of a solver: `auto` where the MPI can do it (Open MPI from "
        "version 5, with ULFM). `false` may be faster, and is for debugging.",
        json_schema_extra={"kind": "one of auto, true, false"},
    )
