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
        default=1, description="Number of trainer ranks: one process each, and one GPU each if there are GPUs."
    )
    program: Arguments = Key(
        description="The command that runs the training script: the executable, then its arguments. The script is an "
        "ordinary one that uses `mpidata.MPIStreamDataset`. `python` means the Python that runs mpidata; other "
        "names are looked for in the job file's folder, then on PATH. The script runs in the job file's folder.",
        examples=["[python, train.py]"],
    )
    per_node: Count | None = Key(
        default=None,
        description="In an allocation: number of trainers on each node that has any. Solvers go to the "
        "other nodes, and to the trainers' nodes only when the others are full.",
        json_schema_extra={"default": "as many as fit"},
    )
    gpus_per_rank: Natural = Key(
        default=0,
        description="Number of GPUs that `mpidata submit` asks for, for each trainer. A trainer sees "
        "all GPUs of its node; the number of its first one is LOCAL_RANK times this.",
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
        description="Instead of `program`: a Python generator function, written `module:function`, that can be "
        "imported from the job file's folder. It gets the parameters by name and yields `{field: array}` or `(time, "
        "{field: array})`. If it has an argument `group`, it gets the communicator and runs on all ranks of its "
        "group, else it runs on the first one.",
        examples=['"heat:simulate"'],
    )
    window: Annotated[Count, Key(le=1024)] | None = Key(
        default=None,
        description="Number of samples that one solver rank may have under way to the trainers before it waits. If a "
        "rank's parts are small (up to 32 KB), the samples of a fast solver share messages (up to 256 KB), and this "
        "is the number of messages.",
        json_schema_extra={"default": "8, but 4 where 8 of a rank's parts exceed 4 MB"},
    )
    start: Literal["split", "spawn"] = Key(
        default="split",
        description="`split`: all ranks start together; this is faster. `spawn`: the running job starts "
        "the solver groups later.",
    )
    lifetime: Literal["pool", "simulation"] = Key(
        default="pool",
        description="`pool`: a group runs one simulation after the other. `simulation` (with `start: spawn`): a "
        "fresh group for each simulation, for a program that can run only one. In the arguments of the program, "
        "`{name}` then stands for the value of a parameter and `{simulation}` for the number of the simulation; "
        "write a literal brace twice.",
    )
    spares: Natural = Key(
        default=0,
        description="Number of groups that start with the others (`start: split`) and wait to take the place of lost "
        "ones. When no spare is left, a new group is started in place of a lost one. With `start: spawn` this is "
        "always so, and the key has no effect.",
    )
    retries: Natural = Key(
        default=2,
        description="Number of further tries, of a simulation whose group died or fell silent or whose Python code "
        "raised an exception, and of starting a group. A simulation that fails on every try is set aside; one that "
        "its own code gives up (`mpidata_fail`) is set aside at once.",
    )
    timeout_s: Positive = Key(
        default=60.0,
        description="Seconds of silence after which a group counts as hung and is ended: the longest time that a "
        "rank may compute between two calls of libmpidata. Waiting inside a call does not count. For the time "
        "before the first step of a simulation there is `start_timeout_s`.",
    )
    start_timeout_s: Positive | None = Key(
        default=None,
        description="The same before the first step of a simulation: the longest time that a rank may "
        "take to read its mesh and make its first step.",
        json_schema_extra={"kind": "number, more than 0", "default": "the larger of 600 and `timeout_s`"},
    )
    tolerate: Natural | None = Key(
        default=None,
        description="Number of simulations that may be set aside before the job counts as failed. Without this key "
        "the job fails in two cases only: if three simulations fail on every try, and every group has failed, "
        "before any simulation has come to its end (those that their own code gives up do not count), or if all are "
        "set aside.",
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
        description="Hosts for the groups that are started later; without this key MPI chooses.",
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
        description="What starts the ranks: `mpirun`, `srun` (within a Slurm allocation), or `auto`, which is `srun` "
        "in an allocation if the MPI is MPICH or the job is heterogeneous, else `mpirun`.",
    )
    hosts: Annotated[
        tuple[Text, ...],
        BeforeValidator(_arguments),
        AfterValidator(_hosts),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = Key(
        default=(),
        description="Without Slurm: the hosts to run on, each with the number of its CPUs that the job may use. "
        "Trainers go to the first hosts, solvers to the others. mpirun must be able to log in to them without a "
        "password, and the folder of the job file and mpidata must have the same paths on all.",
        examples=["[node1:8, node2:8]"],
        json_schema_extra={"kind": "list of texts", "default": "this machine"},
    )
    join_timeout_s: Positive = Key(
        default=600.0,
        description="Seconds after its start within which a rank must call `mpidata_init`, or create its "
        "`MPIStreamDataset`. If it has not, the job ends, because all other ranks wait for it, and the error says "
        "what the rank was doing. The usual cause is a solver that [uses MPI_COMM_WORLD](solver.md).",
    )
    host_timeout_s: Annotated[Positive, Key(ge=3.0, le=3600.0)] = Key(
        default=30.0,
        description="If the job runs on several hosts and Open MPI's mpirun starts it: seconds of silence after "
        "which a host counts as lost. The job then ends, or with `--restarts` goes on from its last checkpoint "
        "without this host.",
    )
    options: Annotated[
        tuple[Text, ...],
        BeforeValidator(_arguments),
        AfterValidator(_printable),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = Key(
        default=(),
        description="Further arguments for mpirun or srun, behind those of mpidata.",
        examples=["[--mca, pml, ucx]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    fault_tolerance: Annotated[bool | Literal["auto"], BeforeValidator(_auto_or_boolean)] = Key(
        default="auto",
        description="Whether the job survives the death of a solver. With `auto` it does if the MPI can do it (Open "
        "MPI from version 5 on, with ULFM). `false` may be faster, and helps with debugging.",
        json_schema_extra={"kind": "one of auto, true, false"},
    )
