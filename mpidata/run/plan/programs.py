"""The plan's section on the programs of the roles."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpidata.mpi.carried_launcher import launcher_of
from mpidata.native.build_flags import carrier_program
from mpidata.run_module import module_command

if TYPE_CHECKING:
    from mpidata.config import Job
    from mpidata.config.launching import Inference
    from mpidata.config.programs import Solvers

__all__ = ["Program", "ProgramsSection", "programs_of"]


@dataclasses.dataclass(frozen=True)
class Program:
    """What a rank runs: the arguments, executable first, and environment variables in addition to its own."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramsSection:
    """The program of each role."""

    programs: Mapping[str, Program]

    @property
    def inference_function(self) -> str:
        """`module:function` that the inference ranks call."""
        settings = self.programs["inference"].arguments[-1]
        return str(json.loads(base64.urlsafe_b64decode(settings + "=" * (-len(settings) % 4)))["function"])


def programs_of(job: Job, checkpoint: int) -> ProgramsSection:
    """Plan the programs of a job that starts from this checkpoint (0: none)."""
    return ProgramsSection(programs=_programs(job, checkpoint))


def _programs(job: Job, checkpoint: int) -> dict[str, Program]:
    """Return the program of each role that a job has."""
    from mpidata.config.programs import doubled, find_program  # load pydantic, which ranks that only join never need

    threads = {}
    if "OMP_NUM_THREADS" not in os.environ:
        carried = job.solvers.carried
        each = carried.ranks if carried is not None else job.solvers.ranks_per_group  # carriers use hardly any CPU time
        busy = 1 + job.trainers.ranks + job.solvers.groups * each  # spares wait
        busy += job.parameters.learner_rank
        busy += sum(section.ranks for section in (job.loaders, job.inference, job.servers) if section is not None)
        threads["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // busy))
    programs = {
        "scheduler": Program(module_command("mpidata.scheduler", folder=job.folder)),
        "trainer": Program(find_program(job.trainers.program, job.folder), threads),
    }
    if job.trainers.ranks_per_replica > 1:
        programs["mate"] = programs["trainer"]
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
    if job.inference is not None:
        programs["inference"] = Program(_inference(job.inference, job.folder, checkpoint), threads)
    if job.parameters.learner_rank:
        programs["learner"] = Program(module_command("mpidata.learner", folder=job.folder), threads)
    if job.servers is not None:
        programs["server"] = Program(module_command("mpidata.server", folder=job.folder), threads)
    return programs


def _inference(inference: Inference, folder: Path, checkpoint: int) -> tuple[str, ...]:
    """Compose the command of an inference rank."""
    settings = {"function": inference.function, "batch": inference.batch, "wait_ms": inference.wait_ms}
    weights = "" if inference.weights is None else os.path.abspath(folder / inference.weights)
    settings |= {"weights": weights, "folder": os.path.abspath(folder), "resumed": checkpoint > 0}
    return module_command("mpidata.inference", _encoded(settings), folder=folder)


def _solver(solvers: Solvers, program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Compose the command of a solver rank; that of a carrier has the launcher and the program as arguments."""
    from mpidata.config.programs import doubled, find_for_filling, find_program, path_for_filling

    carried, found = solvers.carried, find_program(program, folder)
    is_filled = carried is not None and solvers.lifetime == "simulation"
    command = find_for_filling(program, folder) if is_filled else found
    if solvers.case is not None and found[0] == sys.executable and (folder / command[1]).is_file():
        command = (command[0], path_for_filling(command[1], folder), *command[2:])  # because it runs in another folder
    if carried is None:
        return command
    launcher, ranks = _launcher(solvers, found, folder), carried.ranks
    if carried.time is not None:
        variable = f"MPIDATA_ADIOS2_TIME={carried.time}"
        command = ("env", doubled(variable) if is_filled else variable, *command)
    if solvers.output is not None:  # a process of mpidata runs the program, and attaches in its place
        settings = {**solvers.output.model_dump(mode="json"), "folder": str(folder.absolute())}
        reading = module_command("mpidata.solver.output", _encoded(settings), folder=folder)
        command, launcher, ranks = (*map(doubled, reading), *launcher, *command), (), 1
    return (str(carrier_program()), str(ranks), str(len(launcher)), *launcher, *command)


def _launcher(solvers: Solvers, program: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Compose the launcher of a carried program, which may run in another folder; the carrier knows the hosts."""
    from mpidata.config.programs import find_launcher

    carried = solvers.carried
    assert carried is not None
    if carried.launcher == "none":
        return ()
    if carried.launcher == "auto":
        return launcher_of(program, carried.ranks, solvers.ranks_per_group)
    return find_launcher([word.replace("{ranks}", str(carried.ranks)) for word in carried.launcher], folder)


def _encoded(settings: Mapping[str, Any]) -> str:
    """Return settings as an argument without braces."""
    return base64.urlsafe_b64encode(json.dumps(settings).encode()).decode().rstrip("=")


def _own_environment() -> dict[str, str]:
    """Return what a carrier needs to give its program the environment of `mpidata run`, not that of a rank.

    The names of all variables, and the values of those that launchers change. If the job is started by hand, the
    launcher has already changed them.
    """
    if any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_STEP_ID")):
        return {}
    beginnings = ("OMPI_", "OPAL_", "PMIX_", "PRTE_", "UCX_", "HYDRA_", "LD_", "PATH", "SLURM_MPI_TYPE")
    changed = {name: value for name, value in os.environ.items() if name.startswith(beginnings) and "\n" not in value}
    names = ":".join(name for name in os.environ if name.isprintable() and ":" not in name)
    return {**changed, "MPIDATA_NAMES": f":{names}:"}
