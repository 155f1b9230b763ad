"""`slurm`: what `mpidata submit` asks Slurm for, and with which template."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from mpidata.config.base import Count, Key, Model, Natural, Problem, Text, refuse

__all__ = ["AFTER_CHECKPOINT_S", "Slurm"]

_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_TIME = re.compile(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}")
AFTER_CHECKPOINT_S = 30  # to end in: see mpidata.run.deadlines
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
            problems.append(((name,), f"{{key}} is no option of sbatch. Write it without dashes before: {fix!r}."))
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
            problems.append(((name,), "{key} follows from the job. Remove it, or copy the template and change it."))
    refuse(problems)
    return options


def _minutes(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        refuse([((), f"{{key}} is {text!r}. Write minutes, hours:minutes:seconds, or days-hours:minutes:seconds.")])
    return text


def _seconds(time: str) -> float:
    """Seconds of a time limit as Slurm reads it; 0 is no limit."""
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


class Slurm(Model):
    """How `mpidata submit` makes a batch script of the job. Nothing here counts for `mpidata run`."""

    template: Text = Key(
        default="homogeneous",
        description="The template of the script: `homogeneous` (nodes of one kind), `heterogeneous` "
        "(trainers and solvers on nodes of different kinds), `preemptible` (for a job that "
        "may be interrupted, or takes longer than its time limit: it is put back into the "
        "queue and goes on), or a file of your own.",
    )
    nodes: Count | None = Key(
        default=None,
        description="Number of nodes; in a heterogeneous job, number of nodes for the solvers.",
        json_schema_extra={"default": "as Slurm chooses"},
    )
    time: Annotated[Text, BeforeValidator(_minutes), AfterValidator(_time)] | None = Key(
        default=None,
        description="Time limit. `preemptible` needs it.",
        examples=["12:00:00"],
        json_schema_extra={"kind": "text: minutes, hours:minutes:seconds, or days-hours:minutes:seconds"},
    )
    options: Options = Key(
        default={},
        description="Options of sbatch, for all nodes; `true` for one that takes no value.",
        examples=["{account: abc, partition: cpu, exclusive: true}"],
        json_schema_extra=_KIND,
    )
    trainer_options: Options = Key(
        default={},
        description="The same, for the trainers' nodes of a heterogeneous job only.",
        examples=["{partition: gpu}"],
        json_schema_extra=_KIND,
    )
    solver_options: Options = Key(
        default={},
        description="The same, for the solvers' nodes of a heterogeneous job only.",
        json_schema_extra=_KIND,
    )
    setup: Annotated[
        tuple[Text, ...],
        BeforeValidator(_list),
        AfterValidator(_lines),
        Key(json_schema_extra={"kind": "list of texts"}),
    ] = Key(
        default=(),
        description="Shell commands that the script runs first.",
        examples=["[module load gcc]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    signal_s: Natural | None = Key(
        default=None,
        description="So many seconds before the time limit the job is told to write its checkpoint and "
        "end; less than `time`.",
        json_schema_extra={"default": "`checkpoint.within_s` + 30"},
    )
    values: Annotated[
        dict[str, Value], AfterValidator(_values), Key(json_schema_extra={"kind": "mapping from name to value"})
    ] = Key(
        default={},
        description="Values for placeholders of a template of your own: `{{queue}}` for `queue`.",
        examples=["{queue: long}"],
        json_schema_extra={"kind": "mapping from name to value", "default": "none"},
    )

    def signal_before(self, within_s: float) -> int:
        """Seconds before the time limit at which the job is told, if a checkpoint may take so long."""
        return math.ceil(within_s) + AFTER_CHECKPOINT_S if self.signal_s is None else self.signal_s

    def problems(self, within_s: float) -> list[Problem]:
        """Say what is wrong with the time limit, if a checkpoint may take so many seconds."""
        signal_s = self.signal_before(within_s)
        if self.time is None or signal_s < _seconds(self.time):
            return []
        at_once = "the job would be told to end as soon as it starts"
        if self.signal_s is None:
            why = f"is not longer than 'checkpoint.within_s' + {AFTER_CHECKPOINT_S} s: {at_once}"
            return [
                (("slurm", "time"), f"'slurm.time' is {self.time!r}, which {why}. Raise it, or set 'slurm.signal_s'.")
            ]
        why = f"is not less than 'slurm.time', {self.time!r}: {at_once}"
        return [(("slurm", "signal_s"), f"'slurm.signal_s' is {signal_s}, which {why}. Lower it, or raise the other.")]
