"""The parts of a plan: its keys with what they hold, fields, the programs of the roles; and a reader of its lines."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpidata.native import constants
from mpidata.native.build_flags import carrier_program
from mpidata.native.own_launcher import launcher_of
from mpidata.run.folder import RunFolder
from mpidata.run_module import module_command

if TYPE_CHECKING:
    from mpidata.config import Job
    from mpidata.config.programs import Solvers
    from mpidata.run.plan import Plan

__all__ = [
    "HEADER",
    "LOADERS",
    "RECORD",
    "SINGLE",
    "TYPES",
    "WHERE_GIVEN",
    "Field",
    "PlanReader",
    "Program",
    "keys_of",
    "loaders_of",
    "programs_of",
    "ranges_of",
    "record_path_of",
    "statistics_of",
    "texts_of",
    "whole_of",
]

HEADER = "mpidata-plan 1"
SINGLE = tuple(
    "run folder seed start lifetime world trainers groups spares ranks_per_group in_flight retries timeout_s "
    "start_timeout_s join_timeout_s tolerate fault_tolerance simulations validation policy capacity watermark tail "
    "checkpoint attempt checkpoint_every_s checkpoint_keep checkpoint_within_s".split()
)
RECORD = ("record_path", "record_every", "record_when_slow")
LOADERS = tuple(
    "loaders loader_spares loader_start loader_retries loader_timeout_s loader_start_timeout_s loader_tolerate".split()
)
# Those that are left out where they say nothing.
WHERE_GIVEN = (
    "carried", "carried_each", "repeats", "journal", "replay", "samples_window", "samples_stride", "samples_run",
    "statistics", "ranges",
)  # fmt: skip
TYPES: dict[str, type] = dict.fromkeys(
    (
        "start",
        "lifetime",
        "fault_tolerance",
        "policy",
        "tail",
        "record_when_slow",
        "loader_start",
        "statistics",
        "ranges",
    ),
    str,
)
TYPES |= dict.fromkeys(("run", "folder", "record_path", "replay"), Path)
TYPES |= dict.fromkeys(
    ("timeout_s", "start_timeout_s", "join_timeout_s", "checkpoint_every_s", "checkpoint_within_s"), float
)
TYPES |= dict.fromkeys(("loader_timeout_s", "loader_start_timeout_s", "repeats"), float)


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


def programs_of(job: Job) -> dict[str, Program]:
    """Program of each role that a job has."""
    from mpidata.config.programs import doubled, find_program  # load pydantic, which ranks that only join never need

    threads = {}
    if "OMP_NUM_THREADS" not in os.environ:
        carried = job.solvers.carried
        each = carried.ranks if carried is not None else job.solvers.ranks_per_group  # carriers need next to nothing
        busy = 1 + job.trainers.ranks + job.solvers.groups * each  # spares wait
        busy += job.loaders.ranks if job.loaders is not None else 0
        threads["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // busy))
    programs = {
        "scheduler": Program(module_command("mpidata.scheduler", folder=job.folder)),
        "trainer": Program(find_program(job.trainers.program, job.folder), threads),
    }
    if job.solvers.function is not None:
        program = module_command("mpidata.solver.function", job.solvers.function, folder=job.folder)
        is_filled = job.solvers.lifetime == "simulation"
        programs["solver"] = Program((program[0], *map(doubled, program[1:])) if is_filled else program, threads)
    elif job.solvers.program is not None:
        if job.solvers.carried is not None:
            threads = {**threads, **_own_environment()}
        programs["solver"] = Program(_solver(job.solvers, job.solvers.program, job.folder), threads)
    if job.loaders is not None:
        programs["loader"] = Program(module_command("mpidata.loader", folder=job.folder), threads)
    return programs


def _solver(solvers: Solvers, program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Compose the command of a solver rank; that of a carrier has the launcher and the program as arguments."""
    from mpidata.config.programs import doubled, find_for_filling, find_program, path_for_filling

    carried, found = solvers.carried, find_program(program, folder)
    is_filled = carried is not None and solvers.lifetime == "simulation"
    command = find_for_filling(program, folder) if is_filled else found
    if solvers.case is not None and found[0] == sys.executable and (folder / command[1]).is_file():
        command = (command[0], path_for_filling(command[1], folder), *command[2:])  # it runs in another folder
    if carried is None:
        return command
    launcher, ranks = _launcher(solvers, found, folder), carried.ranks
    if solvers.output is not None:  # one process of mpidata's runs the program, and attaches in its place
        settings = {**solvers.output.model_dump(mode="json"), "folder": str(folder.absolute())}
        reading = module_command("mpidata.solver.output", _encoded(settings), folder=folder)
        command, launcher, ranks = (*map(doubled, reading), *launcher, *command), (), 1
    return (str(carrier_program()), str(ranks), str(len(launcher)), *launcher, *command)


def _launcher(solvers: Solvers, program: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Compose what stands before a carried program, which may run in another folder; the carrier knows the hosts."""
    from mpidata.config.programs import find_launcher

    carried = solvers.carried
    assert carried is not None
    if carried.launcher == "none":
        return ()
    if carried.launcher == "auto":
        return launcher_of(program, carried.ranks, solvers.ranks_per_group)
    return find_launcher([word.replace("{ranks}", str(carried.ranks)) for word in carried.launcher], folder)


def _encoded(settings: Mapping[str, Any]) -> str:
    """Write settings as an argument without braces."""
    return base64.urlsafe_b64encode(json.dumps(settings).encode()).decode().rstrip("=")


def _own_environment() -> dict[str, str]:
    """Tell a carrier what it needs to give its program the environment of `mpidata run`, not that of a rank.

    The names of all variables, and the values of those that launchers change. Where the job is started by hand, the
    launcher has changed them already.
    """
    if any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID")):
        return {}
    beginnings = ("OMPI_", "OPAL_", "PMIX_", "PRTE_", "UCX_", "HYDRA_", "LD_", "PATH", "SLURM_MPI_TYPE")
    changed = {name: value for name, value in os.environ.items() if name.startswith(beginnings) and "\n" not in value}
    names = ":".join(name for name in os.environ if name.isprintable() and ":" not in name)
    return {**changed, "MPIDATA_NAMES": f":{names}:"}


def statistics_of(job: Job) -> str:
    """Write down which axis of each field has the channels of its statistics, -1 for none; empty without statistics."""
    asked = job.samples.statistics
    if asked is False:
        return ""
    axes = {} if asked is True else asked
    return " ".join(str(axes[name] % len(field.shape) if name in axes else -1) for name, field in job.fields.items())


def ranges_of(job: Job) -> str:
    """Write down the range of each parameter as JSON: [low, high], or null where the job file does not say."""
    from mpidata.config.table import read_table

    space, columns = job.parameters.space, {}
    if job.parameters.sampler == "file" and None in space.values():
        columns = read_table(job.folder / str(job.parameters.path)).columns
    return json.dumps([_range_of(axis, columns.get(name)) for name, axis in space.items()])


def whole_of(job: Job) -> tuple[str, ...]:
    """Name the parameters that are whole numbers, which programs are told without a decimal point."""
    return tuple(name for name, axis in job.parameters.space.items() if getattr(axis, "whole", False))


def texts_of(job: Job) -> dict[str, tuple[str, ...]]:
    """Give the texts of the parameters that are texts, by name."""
    given = {name: getattr(axis, "texts", ()) for name, axis in job.parameters.space.items()}
    return {name: texts for name, texts in given.items() if texts}


def _range_of(axis: Any, column: Any) -> list[float] | None:
    values = axis if isinstance(axis, tuple) else column if axis is None else axis.all
    return None if values is None else [float(min(values)), float(max(values))]


def record_path_of(job: Job, run: Path) -> Path | None:
    """Where a job records samples; None where it does not."""
    if job.record is None:
        return None
    return RunFolder(run).record if job.record.path is None else Path(os.path.abspath(job.folder / job.record.path))


def keys_of(plan: Plan) -> list[str]:
    """Write the first lines of a plan: the header, and the keys with one value."""
    keys = SINGLE + (RECORD if plan.record_path is not None else ()) + (LOADERS if plan.loaders else ())
    given = [key for key in WHERE_GIVEN if getattr(plan, key) != getattr(type(plan), key)]
    return [HEADER, *(f"{key} {getattr(plan, key)}" for key in (*keys, *given))]


def loaders_of(job: Job) -> dict[str, Any]:
    """Keys of a plan about loaders; none where the job has none."""
    loaders = job.loaders
    if loaders is None:
        return {}
    return {
        "loaders": loaders.ranks,
        "loader_spares": loaders.spares,
        "loader_start": loaders.start,
        "loader_retries": loaders.retries,
        "loader_timeout_s": loaders.timeout_s,
        "loader_start_timeout_s": loaders.start_timeout_s,
        "loader_tolerate": loaders.tolerate,
    }


class PlanReader:
    """Collects the lines of a plan."""

    def __init__(self) -> None:
        self.single: dict[str, str] = {}
        self.hosts: list[str] = []
        self.parameters: list[str] = []
        self.whole: list[str] = []
        self.texts: dict[str, tuple[str, ...]] = {}
        self.fields: list[Field] = []
        self.programs: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.role = ""

    def take(self, line: str) -> None:
        """Take a line; raises ValueError where it makes no sense."""
        key, _, value = line.partition(" ")
        if key in SINGLE or key in RECORD or key in LOADERS or key in WHERE_GIVEN:
            if key in self.single:
                raise ValueError("the key is there twice")
            TYPES.get(key, int)(value)
            self.single[key] = value
        elif key == "host":
            self.hosts.append(value)
        elif key == "parameter":
            self.parameters.append(value)
        elif key == "whole":
            self.whole.append(value)
        elif key == "text":
            name, _, text = value.partition(" ")
            self.texts[name] = (*self.texts.get(name, ()), text)
        elif key == "field":
            name, dtype, ndim, *shape = value.split(" ")
            if int(ndim) != len(shape):
                raise ValueError(f"{len(shape)} extents, not {ndim}")
            self.fields.append(Field(name, dtype, tuple(map(int, shape))))
        elif key == "program":
            if value not in constants.ROLES:
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
