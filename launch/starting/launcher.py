"""The launcher that starts the ranks: mpirun or srun, here or on the nodes of a batch job."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation, named_hosts
from mpidata.launch.batch.placement import Layout, Placement, place
from mpidata.launch.batch.srun import PLUGINS, srun_command, srun_for
from mpidata.launch.batch.system import batch_variables, read_allocation
from mpidata.launch.starting.command import mpirun_command, mpirun_environment, silence_environment
from mpidata.launch.starting.everywhere import on_one
from mpidata.launch.starting.fault_tolerance import choose, of_mpirun
from mpidata.launch.starting.folder.temporary import JobFolders
from mpidata.launch.starting.mpirun import find_mpirun
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName
from mpidata.native.linked_mpi import linked_mpi
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import write_text
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun

__all__ = ["Launcher", "find_launcher", "hydra_command"]


@dataclasses.dataclass(frozen=True)
class Launcher:
    """The launcher of a job: a program that starts its ranks.

    Parameters
    ----------
    job : Job
        The job to start.
    program : Path
        The mpirun or srun.
    mpi : MpiName
        The MPI that mpidata is built with.
    allocation : Allocation or None
        The nodes to use; None: this machine.
    placement : Placement or None
        The node of each rank; None: all on this machine.
    """

    job: Job
    program: Path
    mpi: MpiName
    allocation: Allocation | None = None
    placement: Placement | None = None

    @property
    def is_srun(self) -> bool:
        """Whether srun starts the ranks."""
        return self.program.name == "srun"

    @property
    def is_local(self) -> bool:
        """Whether all ranks are on this machine."""
        return self.placement is None or len({*self.placement.hosts, *self.placement.unused}) == 1

    @property
    def silence_s(self) -> float | None:
        """Seconds of silence after which a host is lost; None if there are no other hosts."""
        return None if self.is_local else self.job.launch.host_timeout_s

    @property
    def trainers_here(self) -> int:
        """Number of trainers on this machine, if the first trainer is here."""
        ranks = self.job.trainers.ranks
        return ranks if self.placement is None else self.placement.hosts[1 : 1 + ranks].count(self.placement.hosts[0])

    def fault_tolerance(self) -> str:
        """Choose `ulfm` or `none`; raises LaunchError if ULFM is requested, but not available."""
        wanted = self.job.launch.fault_tolerance
        return choose(wanted, False) if self.is_srun else of_mpirun(wanted, self.program)

    def command(self, shim: Path, plan: Plan) -> list[str]:
        """Return the command that starts all ranks; the files that it names are those of `files`."""
        options = list(self.job.launch.options)
        hosts = RunFolder(plan.run).hosts if self.placement is not None else None
        if self.is_srun and self.placement is not None:
            command = srun_command(
                self.program, shim, plan, self.placement.components, PLUGINS.get(self.mpi.name), options
            )
            return command
        if self.mpi.name == OPEN_MPI:
            command = mpirun_command(self.program, shim, plan, hosts)
        else:
            command = hydra_command(self.program, shim, plan, hosts)
        return [*command[:-2], *options, *command[-2:]]

    def ask(self, host: str, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one on only one host of the job."""
        return on_one(self.program, self.mpi, self.allocation or Allocation("", ()), host, command)

    def environment(self, folders: JobFolders | None, environ: Mapping[str, str]) -> dict[str, str]:
        """Variables that the launcher needs besides the environment."""
        variables: dict[str, str] = {}
        if self.mpi.name == OPEN_MPI:
            session, segments = (folders.session, folders.segments) if folders is not None else (None, None)
            variables = mpirun_environment(
                root=os.geteuid() == 0,
                session=session,
                segments=segments if self.is_local else None,  # other hosts do not have this folder
                environ=environ,
                old=self.mpi.major == "4",
                one_host=self.is_local,
            )
            if self.silence_s is not None:
                variables |= silence_environment(self.silence_s, environ)
        spawns = self.job.spawns
        variables |= batch_variables(environ, self.allocation, self.is_srun, beside=self.is_srun and spawns)
        return variables

    def files(self, plan: Plan) -> dict[Path, str]:
        """Files that the command needs, with their contents."""
        if self.placement is None:
            return {}
        names = list(self.placement.hosts)
        extra = [] if self.is_srun or self.mpi.name != OPEN_MPI else list(self.placement.unused)
        files = {RunFolder(plan.run).hosts: _lines(_hydra_hosts(names) if self._is_hydra else names + extra)}
        if len(self.placement.components) > 1:
            first = 0
            for number, count in enumerate(self.placement.components):
                files[RunFolder(plan.run).hosts_of(number)] = _lines(names[first : first + count])
                first += count
        return files

    def prepare(self, run: RunFolder, plan: Plan, environ: Mapping[str, str]) -> None:
        """Write the files that the ranks need into the run folder; raises LaunchError if it cannot be written."""
        try:
            for path, text in self.files(plan).items():
                write_text(path, text)
            if self.placement is not None and "OMP_NUM_THREADS" not in environ:
                PlannedRun(run, with_threads(plan, self.placement.trainer_cpus)).write_plan()
        except OSError as error:
            raise LaunchError(f"Cannot write into {run.path}: {error.strerror}. Make room there.") from None

    def describe(self) -> list[str]:
        """Return a line for each node with its ranks; empty if all are on this machine."""
        return [] if self.placement is None else list(self.placement.lines(Layout.of(self.job)))

    @property
    def _is_hydra(self) -> bool:
        return not self.is_srun and self.mpi.name != OPEN_MPI


def find_launcher(job: Job, environ: Mapping[str, str]) -> Launcher:
    """Choose the launcher of a job.

    Parameters
    ----------
    job : Job
        With `launch.with`.
    environ : mapping of str to str
        The environment.

    Raises
    ------
    LaunchError
        What the job file requests is not available, or the ranks do not fit on the allocation.
    """
    allocation, mpi = read_allocation(environ), linked_mpi() or MpiName(OPEN_MPI)
    if job.launch.hosts:
        return _on_named_hosts(job, allocation, mpi)
    program = srun_for(job, allocation, mpi, environ) or find_mpirun()
    if allocation is None:
        return Launcher(job, program, mpi)
    return Launcher(job, program, mpi, allocation, place(Layout.of(job), allocation))


def _on_named_hosts(job: Job, allocated: Allocation | None, mpi: MpiName) -> Launcher:
    if allocated is not None:
        raise LaunchError(
            f"'launch.hosts' names hosts, but this is {allocated.origin}, which has its own. Remove the key, or unset "
            f"{allocated.variable}."
        )
    if job.launch.with_ == "srun":
        raise LaunchError("'launch.hosts' is for mpirun, but 'launch.with' is 'srun'. Remove one of them.")
    allocation = named_hosts(job.launch.hosts)
    return Launcher(job, find_mpirun(), mpi, allocation, place(Layout.of(job), allocation))


def hydra_command(mpirun: Path, shim: Path, plan: Plan, hosts: Path | None = None) -> list[str]:
    """Return the command that starts a plan's ranks with MPICH's mpirun; `hosts` as `Launcher.files` writes it."""
    where = [] if hosts is None else ["-f", str(hosts)]
    return [str(mpirun), "-n", str(plan.world), *where, str(shim), str(plan.run)]


def with_threads(plan: Plan, cpus: int) -> Plan:
    """Let each trainer use the CPUs that it has to itself, except one for its receive thread."""
    programs = dict(plan.programs)
    for role, threads in (
        ("trainer", max(1, cpus - 1)),
        ("mate", max(1, cpus - 1)),
        ("solver", 1),
        ("loader", 1),
        ("inference", 1),
        ("learner", 1),
        ("server", 1),
    ):
        program = programs.get(role)
        if program is not None and "OMP_NUM_THREADS" in program.environment:
            environment = {**program.environment, "OMP_NUM_THREADS": str(threads)}
            programs[role] = dataclasses.replace(program, environment=environment)
    return dataclasses.replace(plan, programs=programs)


def _hydra_hosts(hosts: list[str]) -> list[str]:
    """Write `a, a, b` as `a:2, b:1`."""
    runs: list[tuple[str, int]] = []
    for host in hosts:
        if runs and runs[-1][0] == host:
            runs[-1] = (host, runs[-1][1] + 1)
        else:
            runs.append((host, 1))
    return [f"{host}:{count}" for host, count in runs]


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
