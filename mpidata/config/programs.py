"""`solvers`: what they run, on how many ranks, and how programs are found."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag, model_validator
from typing_extensions import Self

from mpidata.config.base import Count, Key, Model, Natural, Positive, Problem, Text, free_key, refuse
from mpidata.config.case import Case, Output

__all__ = [
    "Arguments",
    "Carried",
    "Solvers",
    "argument_list",
    "doubled",
    "find_for_filling",
    "find_launcher",
    "find_program",
    "is_object_name",
    "object_name",
    "path_for_filling",
    "printable",
]

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
    """Return the command of a program, with an absolute executable if it is in the job file's folder.

    `python` and `python3` mean the Python that runs mpidata. A name with a slash is relative to the folder; another
    name that is not a file there is looked up in PATH.
    """
    first, *rest = program
    if first in ("python", "python3"):
        return (sys.executable, *rest)
    here = folder / first
    if "/" in first or (os.path.isfile(here) and os.access(here, os.X_OK)):
        return (os.path.abspath(here), *rest)
    return tuple(program)


def find_launcher(launcher: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the words of `carried.launcher` such that they name the same files from any folder.

    The first is found like a program. The second, perhaps the script of an interpreter, and words with a slash are made
    absolute if the job file's folder has such a file. Braces in the folder's own name are doubled, because those in the
    words are filled in later.
    """
    words = [find_for_filling(launcher, folder)[0]]
    for number, word in enumerate(launcher[1:], start=1):
        is_path = ("/" in word or number == 1) and os.path.isfile(folder / word)
        words.append(path_for_filling(word, folder) if is_path else word)
    return tuple(words)


def find_for_filling(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """As `find_program`, for arguments in which placeholders are filled in later."""
    first, *rest = find_program(program, folder)
    if first == sys.executable:
        return (doubled(first), *rest)
    return (first if first == program[0] else path_for_filling(program[0], folder), *rest)


def path_for_filling(name: str, folder: Path) -> str:
    """Make a name from the user absolute; keep its placeholders, but double the braces of the folder."""
    return os.path.normpath(os.path.join(doubled(os.path.abspath(folder)), name))


def doubled(path: str) -> str:
    """Return a path, with doubled braces, for a text in which placeholders are filled in."""
    return path.replace("{", "{{").replace("}", "}}")


def _host(name: str) -> str:
    if not all(c.isalnum() or c in "._-:[]" for c in name):
        refuse([((), f"{{key}} is {name!r}. Write the name of a host, as mpirun knows it.")])
    return name


def _auto_or_none(value: Any) -> Any:
    if value not in ("auto", "none"):
        refuse([((), f'{{key}} is {value!r}. It must be auto, none, or a list of texts: [mpirun, -n, "{{ranks}}"].')])
    return value


def argument_list(value: Any) -> Any:
    """Refuse a text instead of a list of texts."""
    if isinstance(value, str):
        arguments = ", ".join(value.split())
        refuse([((), f"{{key}} is the text {value!r}. Write a list with one text for each argument: [{arguments}].")])
    return tuple(value) if isinstance(value, list) else value


def printable(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse arguments that the plan cannot hold."""
    bad = [i for i, argument in enumerate(arguments) if "\n" in argument or "\0" in argument]
    refuse(((i,), f"{{key}} is {arguments[i]!r}. An argument cannot hold a newline or a NUL; remove it.") for i in bad)
    return arguments


Arguments = Annotated[
    tuple[Text, ...],
    BeforeValidator(argument_list),
    AfterValidator(printable),
    Key(min_length=1, json_schema_extra={"kind": "list of texts"}),
]


_Launcher = Annotated[
    Annotated[Literal["auto", "none"], BeforeValidator(_auto_or_none), Tag("<word>")]
    | Annotated[Arguments, Tag("<words>")],
    Discriminator(lambda value: "<words>" if isinstance(value, list | tuple) else "<word>"),
]


class Carried(Model):
    """Solver programs that are not ranks of the job: each group's rank starts one, and sends what it puts."""

    ranks: Count = free_key(
        default=1,
        description="Number of ranks of the program, on the hosts of its group. Each calls `mpidata_attach`, see "
        "[carried programs](solver.md#carried-programs).",
    )
    launcher: _Launcher = free_key(
        default="auto",
        description="What starts the program's ranks. `none` starts the program directly. `auto` does so for one "
        "rank; otherwise it uses srun in a Slurm allocation, or else the mpirun of the MPI that the program is linked "
        "with. A list is a command, which stands before the program; its first word is looked up like `program`. The "
        "second word (the script of an interpreter) and words with a slash are relative to the job file's folder if "
        "they are files there. In all words `{ranks}` stands for the number of ranks, and `{hosts}` for the name of "
        "the host, or for the names of all hosts that have a carrier of the group: `node1,node2`. `{nodes}` is the "
        "number of hosts.",
        examples=['[mpirun, -n, "{ranks}", --host, "{hosts}"]'],
        json_schema_extra={"kind": "list of texts, or auto or none"},
    )
    time: Text | None = free_key(
        default=None,
        description="Variable of [ADIOS2](adios2.md) that contains the time of a step. Without it, steps are counted "
        "from 0.",
    )

    @model_validator(mode="after")
    def _one_rank(self) -> Self:
        if self.launcher == "none" and self.ranks > 1:
            said = f"'solvers.carried.launcher' is 'none', which starts one rank, but there are {self.ranks}"
            refuse([(("launcher",), f"{said}. Write 'auto', or the launcher's command.")])
        return self


class Solvers(Model):
    """The groups of ranks that simulate, and their program. Give either `program` or `function`."""

    groups: Count = free_key(default=1, description="Number of solver groups: simulations that run at the same time.")
    ranks_per_group: Count = free_key(
        default=1,
        description="Number of ranks that run one simulation together. With `carried`: number of carriers of a "
        "program, which needs one on each of its hosts.",
    )
    program: Arguments | None = free_key(
        default=None,
        description="An executable linked with libmpidata (or a Python script that uses `mpidata.solver`) and its "
        "arguments. It is looked up and run like `trainers.program`.",
        examples=["[./heat2d]"],
        json_schema_extra={"kind": "list of texts"},
    )
    function: Annotated[Text, AfterValidator(object_name)] | None = free_key(
        default=None,
        description="Instead of `program`: a Python generator function, written `module:function`, that can be "
        "imported from the job file's folder. It gets the parameters by name and yields `{field: array}` or "
        "`(time, {field: array})`. If it has an argument `group`, it gets the communicator and runs on all ranks of "
        "its group; otherwise it runs on the first one.",
        examples=['"heat:simulate"'],
    )
    carried: Carried | None = free_key(
        default=None,
        description="The program is not a rank of the job: it is linked with libmpidata_carried, and may use any MPI "
        "or none.",
        examples=["{ranks: 1}"],
    )
    case: Case | None = free_key(
        default=None,
        description="A folder that is copied for each simulation. Needs `lifetime: simulation`, and `carried` or "
        "`start: spawn`.",
        examples=["{folder: case, fill: [input.dat]}"],
    )
    output: Output | None = free_key(
        default=None,
        description="The program is not linked with mpidata: mpidata reads the files that it writes. Needs `case` "
        "and `carried`.",
        examples=['{files: "step_*.npy"}'],
    )
    in_flight: Annotated[Count, Key(le=1024)] | None = free_key(
        default=None,
        description="Number of samples that one solver rank may have in flight to the trainers before it waits. If a "
        "rank's parts are small (up to 32 KB), the samples of a fast solver share messages (up to 256 KB), and this "
        "is the number of messages.",
        json_schema_extra={"default": "8, or 4 if 8 of a rank's parts exceed 4 MB"},
    )
    start: Literal["split", "spawn"] = free_key(
        default="split",
        description="`split`: all ranks start together, which is faster. `spawn`: the running job starts the solver "
        "groups later.",
    )
    lifetime: Literal["pool", "simulation"] = free_key(
        default="pool",
        description="`pool`: a group runs one simulation after another. `simulation` (with `start: spawn` or "
        "`carried`): the program can run only one simulation, and is started for each. In its arguments, `{name}` "
        "then stands for the value of a parameter and `{simulation}` for the number of the simulation; write a "
        "literal brace twice.",
    )
    spares: Natural = free_key(
        default=0,
        description="Number of groups that start with the others (`start: split`) and wait to replace lost ones. "
        "When no spare is left, a new group is started in place of a lost one. With `start: spawn` this is always "
        "done, and the key has no effect.",
    )
    retries: Natural = free_key(
        default=2,
        description="Number of retries of a simulation after its group has died or become silent, or its Python code "
        "has raised an exception; also the number of retries of starting a group. A simulation that fails on every "
        "try is set aside; one that its solver abandons (`mpidata_fail`) is set aside at once.",
    )
    timeout_s: Positive = free_key(
        default=60.0,
        description="Seconds of silence after which a group counts as hung and is ended: the longest time that a "
        "rank may compute between two calls of libmpidata. Time spent inside a call does not count. Before the first "
        "step of a simulation, `start_timeout_s` applies.",
    )
    start_timeout_s: Positive | None = free_key(
        default=None,
        description="The same before the first step of a simulation: the longest time that a rank may take to read "
        "its mesh and compute its first step.",
        json_schema_extra={"kind": "number, more than 0", "default": "the larger of 600 and `timeout_s`"},
    )
    tolerate: Natural | None = free_key(
        default=None,
        description="Number of simulations that may be set aside before the job counts as failed. Without this key "
        "the job fails in two cases only: if all simulations are set aside; or if, before any simulation is complete, "
        "three simulations fail on every try and every group has failed (abandoned simulations do not count).",
        json_schema_extra={"kind": "whole number, at least 0", "default": "all"},
    )
    hosts: (
        Annotated[
            tuple[Annotated[Text, AfterValidator(_host)], ...],
            BeforeValidator(argument_list),
            Key(min_length=1, json_schema_extra={"kind": "list of texts"}),
        ]
        | None
    ) = free_key(
        default=None,
        description="Hosts for the groups that are started later. Without this key MPI chooses.",
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
        if self.start == "split" and self.lifetime == "simulation" and self.carried is None:
            problems.append(
                (
                    ("lifetime",),
                    "'solvers.lifetime' is 'simulation', which needs 'start: spawn'. Add that, or remove it.",
                )
            )
        if self.carried is not None:
            problems += _carried_problems(self, self.carried)
        if self.case is not None and self.lifetime == "pool":
            needs = "'lifetime: simulation', and 'carried' or 'start: spawn'"
            problems.append((("case",), f"'solvers.case' needs {needs}. Add them."))
        if self.output is not None and (self.case is None or self.carried is None):
            needs = "'solvers.case', the folder to write in, and 'solvers.carried'"
            problems.append((("output",), f"'solvers.output' needs {needs}. Add them."))
        refuse(problems)
        return self


def _carried_problems(solvers: Solvers, carried: Carried) -> Iterator[Problem]:
    if solvers.program is None:
        yield ("carried",), "'solvers.carried' needs 'solvers.program'. Add it, or remove 'carried'."
    if solvers.output is not None and carried.time:
        yield ("carried", "time"), "'solvers.carried.time' is for ADIOS2, but 'solvers.output' reads files. Remove it."
    if solvers.start == "spawn":
        yield ("start",), "'solvers.start' is 'spawn', but carried programs are started by ranks of the job. Remove it."
    if solvers.ranks_per_group > carried.ranks:
        said = f"'solvers.ranks_per_group' is {solvers.ranks_per_group}, but 'solvers.carried.ranks' is {carried.ranks}"
        yield ("ranks_per_group",), f"{said}. With 'carried' it is the number of carriers. Lower it."
