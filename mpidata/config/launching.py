"""`loaders`, `inference`, `servers`, `launch` and `slurm`: the other ranks, and how the job is started."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from mpidata.config.base import Count, Key, Model, Natural, Positive, Problem, Text, free_key, refuse
from mpidata.config.programs import argument_list, object_name, printable

__all__ = ["AFTER_CHECKPOINT_S", "Inference", "Launch", "Loaders", "Servers", "Slurm"]

_HOST = re.compile(r"[\w.-]+:[1-9]\d{0,5}", re.ASCII)
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_TIME = re.compile(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}")
AFTER_CHECKPOINT_S = 30  # for the job to end: see mpidata.run.deadlines
_COMPUTED = ("job-name", "nodes", "ntasks", "ntasks-per-node", "chdir")


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | bool | int | float):
        refuse([((), "{key} must be a text, a number, true or false.")])
    return value


Value = Annotated[Any, AfterValidator(_scalar)]


def _one_line(name: str, value: Any) -> list[Problem]:
    bad = isinstance(value, str) and not value.isprintable()
    return [((name,), f"{{key}} is {value!r}. Write it on one line.")] if bad else []


def _options(options: dict[str, Any]) -> dict[str, Any]:
    problems: list[Problem] = []
    for name, value in options.items():
        problems += _one_line(name, value)
        if not _OPTION.fullmatch(name):
            fix = name.lstrip("-")
            problems.append(((name,), f"{{key}} is not an option of sbatch. Write it without dashes: {fix!r}."))
        elif name == "time":
            problems.append(((name,), "{key} has a key of its own: set 'slurm.time' instead."))
        elif name == "array":
            problems.append(
                (
                    (name,),
                    "{key}: all tasks of an array would run the same simulations. Submit a job for each seed: "
                    "`mpidata submit job.yaml --set seed=1`.",
                )
            )
        elif name in _COMPUTED:
            problems.append(((name,), "{key} is set by mpidata. Remove it, or copy the template and change it."))
    refuse(problems)
    return options


def _minutes(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        refuse([((), f"{{key}} is {text!r}. Write minutes, hours:minutes:seconds, or days-hours:minutes:seconds.")])
    return text


def _seconds(time: str) -> float:
    """Return the seconds of a time limit of Slurm; 0 is no limit."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, [*parts, 0][:2]
    return 86400 * int(days or 0) + 3600 * hours + 60 * minutes + seconds or float("inf")


def _values(values: dict[str, Any]) -> dict[str, Any]:
    problems: list[Problem] = []
    for name, value in values.items():
        problems += _one_line(name, value)
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            problems.append(((name,), f"{{key}}: {name!r} is not a name. Use letters, digits and underscores."))
    refuse(problems)
    return values


def _list(value: Any) -> Any:
    if isinstance(value, str):
        refuse([((), f"{{key}} is the text {value!r}. Write a list with one text for each line: [{value!r}].")])
    return tuple(value) if isinstance(value, list) else value


def _lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    refuse([((i,), f"{{key}} is {line!r}. Write one line each.") for i, line in enumerate(lines) if "\n" in line])
    return lines


Options = Annotated[
    dict[str, Value], AfterValidator(_options), Key(json_schema_extra={"kind": "mapping from option to value"})
]
_KIND: dict[str, Any] = {"kind": "mapping from option to value", "default": "none"}


def _auto_or_boolean(value: Any) -> Any:
    if value is not True and value is not False and value != "auto":
        refuse([((), f"{{key}} is {value!r}. It must be one of auto, true, false.")])
    return value


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


class Launch(Model):
    """How the job is started."""

    with_: Literal["auto", "mpirun", "srun"] = free_key(
        default="auto",
        alias="with",
        description="What starts the ranks: `mpirun`; `srun`, within a Slurm allocation; or `auto`, which is `srun` "
        "in an allocation if the MPI is MPICH or the job is heterogeneous, otherwise `mpirun`.",
    )
    hosts: Annotated[
        tuple[Text, ...],
        BeforeValidator(argument_list),
        AfterValidator(_hosts),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = free_key(
        default=(),
        description="Without Slurm: the hosts to run on, each with the number of its CPUs that the job may use. "
        "Trainers are placed on the first hosts, solvers on the others. mpirun must be able to log in to them without "
        "a password, and the folder of the job file and mpidata must have the same paths on all.",
        examples=["[node1:8, node2:8]"],
        json_schema_extra={"kind": "list of texts", "default": "this machine"},
    )
    join_timeout_s: Positive = free_key(
        default=600.0,
        description="Seconds after its start within which a rank must call `mpidata_init`, or create its "
        "`MPIStreamDataset`. Otherwise the job ends, because all other ranks wait for it, and the error reports what "
        "the rank was doing. The usual cause is a solver that uses [MPI_COMM_WORLD](solver.md#mpi_comm_world).",
    )
    host_timeout_s: Annotated[Positive, Key(ge=3.0, le=3600.0)] = free_key(
        default=30.0,
        description="If the job runs on several hosts and Open MPI's mpirun starts it: seconds of silence after "
        "which a host counts as lost. The job then ends, or with `--restarts` continues from its last checkpoint "
        "without this host.",
    )
    options: Annotated[
        tuple[Text, ...],
        BeforeValidator(argument_list),
        AfterValidator(printable),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = free_key(
        default=(),
        description="Additional arguments for mpirun or srun, after those of mpidata.",
        examples=["[--mca, pml, ucx]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    fault_tolerance: Annotated[bool | Literal["auto"], BeforeValidator(_auto_or_boolean)] = free_key(
        default="auto",
        description="Whether the job survives the death of a solver. With `auto` it does if the MPI can do it (Open "
        "MPI since version 5, with ULFM). `false` may be faster, and helps with debugging.",
        json_schema_extra={"kind": "one of auto, true, false"},
    )


class Loaders(Model):
    """The ranks that read and prepare existing data."""

    ranks: Count = free_key(default=1, description="Number of loaders that work at the same time (one process each).")
    spares: Natural = free_key(default=0, description="As `solvers.spares`, for loaders.")
    retries: Natural = free_key(
        default=2,
        description="Number of retries of work whose loader has died or become silent, and of starting a loader.",
    )
    timeout_s: Positive = free_key(
        default=60.0,
        description="Seconds of silence after which a loader counts as hung and is ended: the longest time for one "
        "item.",
    )
    start_timeout_s: Positive = free_key(
        default=600.0, description="The same while a loader builds a dataset or counts the rows of its files."
    )
    tolerate: Natural = free_key(
        default=0,
        description="Number of items that may be left out because loaders were lost at them on every try. With more "
        "the job fails.",
    )
    start: Literal["split", "spawn"] = free_key(default="split", description="As `solvers.start`, for loaders.")


class Inference(Model):
    """The ranks that evaluate the model for solvers."""

    ranks: Count = free_key(
        default=1, description="Number of inference ranks that answer at the same time (one process each)."
    )
    function: Annotated[Text, AfterValidator(object_name)] = free_key(
        description="A Python function, written `module:function`, that can be imported from the job file's folder. "
        "It gets a dict of tensors [rows, ...] by name and returns such a dict. If it has an argument `weights`, it "
        "also gets the weights, a dict of tensors. Rows must not depend on each other or on earlier calls.",
        examples=['"net:answer"'],
    )
    batch: Count = free_key(
        default=1024,
        description="Largest number of rows in one call of the function; a question with more is passed alone.",
    )
    wait_ms: Annotated[float, Key(ge=0, le=60_000)] = free_key(
        default=0.0,
        description="Milliseconds that a rank waits for more questions while it has fewer than `batch` rows.",
    )
    weights: Text | None = free_key(
        default=None,
        description="A file of `torch.save` with the initial weights: a dict of tensors, for example a `state_dict`. "
        "Without this key, a function that takes weights answers only after some were published.",
        examples=["net.pt"],
        json_schema_extra={"default": "none"},
    )
    spares: Natural = free_key(default=0, description="As `solvers.spares`, for inference ranks.")
    timeout_s: Positive = free_key(
        default=60.0,
        description="Seconds of silence after which an inference rank counts as hung and is ended: the longest time "
        "for one call of the function. The job ends if no inference rank is ready to answer for this long while "
        "solvers run; a rank that is being started adds `start_timeout_s`.",
    )
    start_timeout_s: Positive = free_key(
        default=600.0, description="The same while the rank imports the function and reads the weights."
    )


class Servers(Model):
    """The ranks that store the parameters of the model for `mpidata.ParameterServer`."""

    ranks: Count = free_key(default=1, description="Number of parameter servers (one process each).")


class Slurm(Model):
    """How `mpidata submit` creates the batch script of the job. These keys have no effect on `mpidata run`."""

    template: Text = free_key(
        default="homogeneous",
        description="The template of the script: `homogeneous` (nodes of one kind), `heterogeneous` (trainers and "
        "solvers on nodes of different kinds), `preemptible` (for a job that may be interrupted, or takes longer than "
        "its time limit: it is requeued and resumed), or a file of your own.",
    )
    nodes: Count | None = free_key(
        default=None,
        description="Number of nodes; in a heterogeneous job, number of nodes for the solvers.",
        json_schema_extra={"default": "as Slurm chooses"},
    )
    time: Annotated[Text, BeforeValidator(_minutes), AfterValidator(_time)] | None = free_key(
        default=None,
        description="Time limit. `preemptible` needs it.",
        examples=["12:00:00"],
        json_schema_extra={"kind": "text: minutes, hours:minutes:seconds, or days-hours:minutes:seconds"},
    )
    options: Options = free_key(
        default={},
        description="Options of sbatch, for all nodes; `true` for an option without a value.",
        examples=["{account: abc, partition: cpu, exclusive: true}"],
        json_schema_extra=_KIND,
    )
    trainer_options: Options = free_key(
        default={},
        description="The same, only for the trainers' nodes of a heterogeneous job.",
        examples=["{partition: gpu}"],
        json_schema_extra=_KIND,
    )
    solver_options: Options = free_key(
        default={},
        description="The same, only for the solvers' nodes of a heterogeneous job.",
        json_schema_extra=_KIND,
    )
    setup: Annotated[
        tuple[Text, ...],
        BeforeValidator(_list),
        AfterValidator(_lines),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = free_key(
        default=(),
        description="Shell commands that the script runs first.",
        examples=["[module load gcc]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    signal_s: Natural | None = free_key(
        default=None,
        description="Seconds before the time limit at which the job is asked to write its checkpoint and end; less "
        "than `time`.",
        json_schema_extra={"default": "`checkpoint.within_s` + 30"},
    )
    values: Annotated[
        dict[str, Value], AfterValidator(_values), Key(json_schema_extra={"kind": "mapping from name to value"})
    ] = free_key(
        default={},
        description="Values for the placeholders of your own template: `queue` replaces `{{queue}}`.",
        examples=["{queue: long}"],
        json_schema_extra={"kind": "mapping from name to value", "default": "none"},
    )

    def signal_before(self, within_s: float) -> int:
        """Return how many seconds before the time limit the job gets a signal if a checkpoint may take `within_s`."""
        return math.ceil(within_s) + AFTER_CHECKPOINT_S if self.signal_s is None else self.signal_s

    def problems(self, within_s: float) -> list[Problem]:
        """Return what is wrong with the time limit if a checkpoint may take `within_s`."""
        signal_s = self.signal_before(within_s)
        if self.time is None or signal_s < _seconds(self.time):
            return []
        at_once = "the job would be asked to end as soon as it starts"
        if self.signal_s is None:
            why = f"is not longer than 'checkpoint.within_s' + {AFTER_CHECKPOINT_S} s: {at_once}"
            return [
                (("slurm", "time"), f"'slurm.time' is {self.time!r}, which {why}. Raise it, or set 'slurm.signal_s'.")
            ]
        why = f"is not less than 'slurm.time', {self.time!r}: {at_once}"
        return [(("slurm", "signal_s"), f"'slurm.signal_s' is {signal_s}, which {why}. Lower it, or raise the other.")]
