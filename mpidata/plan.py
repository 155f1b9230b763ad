"""The plan: what every rank of a job must know, as a small text file written before anything starts."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import LaunchError, MpidataError

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["ROLES", "Field", "Plan", "Program", "find_program"]

ROLES = ("scheduler", "trainer", "solver")
_HEADER = "mpidata-plan 1"
_SINGLE = (
    "run",
    "folder",
    "seed",
    "world",
    "trainers",
    "groups",
    "ranks_per_group",
    "window",
    "simulations",
    "validation",
    "policy",
    "capacity",
    "watermark",
    "tail",
)
_NUMBERS = tuple(key for key in _SINGLE if key not in ("run", "folder", "policy", "tail"))


@dataclasses.dataclass(frozen=True)
class Field:
    """A declared field: its name, dtype (`float32`, ...) and shape (C order, () for a scalar)."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Program:
    """What a rank runs: the arguments, executable first, and the environment variables it is given besides its own."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The layout of a job and its data.

    World ranks: 0 is the scheduler, then come the trainers, then the solver groups of `ranks_per_group` ranks each.
    Simulations 0 to `simulations` - 1 are trained on, the next `validation` ones are not.
    """

    run: Path
    folder: Path
    seed: int
    world: int
    trainers: int
    groups: int
    ranks_per_group: int
    window: int
    simulations: int
    validation: int
    policy: str
    capacity: int
    watermark: int
    tail: str
    parameters: tuple[str, ...]
    fields: tuple[Field, ...]
    programs: Mapping[str, Program]

    @classmethod
    def of(cls, job: Job, run: Path) -> Plan:
        """Plan a job that is to run in the given run folder.

        Parameters
        ----------
        job : Job
            As `mpidata.config.load_job` returns it.
        run : Path
            The run folder; need not exist.
        """
        return cls(
            run=Path(os.path.abspath(run)),
            folder=job.folder,
            seed=job.seed,
            world=job.world_size,
            trainers=job.trainers.ranks,
            groups=job.solvers.groups,
            ranks_per_group=job.solvers.ranks_per_group,
            window=job.solvers.window,
            simulations=job.simulations,
            validation=job.validation.count,
            policy=job.buffer.policy,
            capacity=job.buffer.capacity,
            watermark=job.buffer.watermark,
            tail=job.buffer.tail,
            parameters=job.parameter_names,
            fields=tuple(Field(name, field.dtype, field.shape) for name, field in job.fields.items()),
            programs=_programs(job),
        )

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read a plan's text; raises MpidataError if it is not one."""
        lines = text.split("\n")
        if lines[0] != _HEADER:
            raise MpidataError(f"The plan begins with {lines[0]!r}, not {_HEADER!r}. Use one version of mpidata only.")
        reader = _Reader()
        for number, line in enumerate(lines[1:], start=2):
            if line:
                try:
                    reader.take(line)
                except ValueError as error:
                    message = f"Line {number} of the plan is {line!r}: {error}. Start the job again."
                    raise MpidataError(message) from None
        missing = [key for key in _SINGLE if key not in reader.single]
        missing += [f"program {role}" for role in ROLES if role not in reader.programs]
        if missing:
            raise MpidataError(f"The plan lacks {', '.join(missing)}. Start the job again.")
        single = reader.single
        return cls(
            run=Path(single["run"]),
            folder=Path(single["folder"]),
            policy=single["policy"],
            tail=single["tail"],
            **{key: int(single[key]) for key in _NUMBERS},
            parameters=tuple(reader.parameters),
            fields=tuple(reader.fields),
            programs={
                role: Program(tuple(arguments), environment)
                for role, (arguments, environment) in reader.programs.items()
            },
        )

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read the plan file of a run folder; raises MpidataError if it cannot be read or is not a plan."""
        try:
            text = Path(path).read_bytes().decode()  # bytes: read_text would turn a \r of an argument into \n
        except (OSError, UnicodeDecodeError) as error:
            raise MpidataError(f"Cannot read the plan {path}: {error}. Start the job with `mpidata run`.") from None
        return cls.parse(text)

    def text(self) -> str:
        """Write the plan as text, for the file `plan` of the run folder; raises MpidataError on a newline."""
        lines = [_HEADER]
        lines += [f"{key} {getattr(self, key)}" for key in _SINGLE]
        lines += [f"parameter {name}" for name in self.parameters]
        lines += [" ".join(["field", f.name, f.dtype, str(len(f.shape)), *map(str, f.shape)]) for f in self.fields]
        for role in ROLES:
            lines.append(f"program {role}")
            lines += [f"argument {argument}" for argument in self.programs[role].arguments]
            lines += [f"environment {key}={value}" for key, value in self.programs[role].environment.items()]
        for line in lines:
            if "\n" in line or "\0" in line:
                raise MpidataError(f"A newline or a NUL cannot go into the plan: {line!r}. Remove it.")
        return "\n".join(lines) + "\n"

    def role_of(self, rank: int) -> tuple[str, int, int]:
        """Role of a rank of the world.

        Parameters
        ----------
        rank : int
            0 to `world` - 1.

        Returns
        -------
        role : str
            `scheduler`, `trainer` or `solver`.
        index : int
            Which trainer, or which group; 0 for the scheduler.
        rank_in_group : int
            Rank within the solver group, else 0.

        Raises
        ------
        LaunchError
            The rank is outside the world of the plan.
        """
        if not 0 <= rank < self.world:
            raise LaunchError(
                f"There is no rank {rank} in this job of {self.world} ranks. Start it with -n {self.world}."
            )
        if rank == 0:
            return "scheduler", 0, 0
        if rank <= self.trainers:
            return "trainer", rank - 1, 0
        group, rank_in_group = divmod(rank - 1 - self.trainers, self.ranks_per_group)
        return "solver", group, rank_in_group


class _Reader:
    """Collects the lines of a plan; `take` raises ValueError on one that makes no sense."""

    def __init__(self) -> None:
        self.single: dict[str, str] = {}
        self.parameters: list[str] = []
        self.fields: list[Field] = []
        self.programs: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.role = ""

    def take(self, line: str) -> None:
        key, _, value = line.partition(" ")
        if key in _SINGLE:
            if key in self.single:
                raise ValueError("the key is there twice")
            if key in _NUMBERS:
                int(value)
            self.single[key] = value
        elif key == "parameter":
            self.parameters.append(value)
        elif key == "field":
            name, dtype, ndim, *shape = value.split(" ")
            if int(ndim) != len(shape):
                raise ValueError(f"{len(shape)} extents, not {ndim}")
            self.fields.append(Field(name, dtype, tuple(map(int, shape))))
        elif key == "program":
            if value not in ROLES:
                raise ValueError("no such role")
            self.role = value
            self.programs[value] = ([], {})
        elif key == "argument" and self.role:
            self.programs[self.role][0].append(value)
        elif key == "environment" and self.role and "=" in value:
            name, _, value = value.partition("=")
            self.programs[self.role][1][name] = value
        else:
            raise ValueError("unknown key")


def find_program(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Arguments to start a program with: the executable made absolute where it lies in the job file's folder.

    `python` and `python3` mean the Python that runs mpidata. A name that is no file of the folder is left to PATH.
    """
    first, *rest = program
    if first in ("python", "python3"):
        return (sys.executable, *rest)
    here = folder / first
    if here.is_file() and ("/" in first or os.access(here, os.X_OK)):
        return (os.path.abspath(here), *rest)
    return tuple(program)


def _programs(job: Job) -> dict[str, Program]:
    threads = {}
    if "OMP_NUM_THREADS" not in os.environ:
        threads["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // job.world_size))
    if job.solvers.function is not None:
        solver = Program((sys.executable, "-m", "mpidata.function_solver", job.solvers.function), threads)
    else:
        solver = Program(find_program(job.solvers.program or (), job.folder))
    return {
        "scheduler": Program((sys.executable, "-m", "mpidata.scheduler")),
        "trainer": Program(find_program(job.trainers.program, job.folder), threads),
        "solver": solver,
    }
