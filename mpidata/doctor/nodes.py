"""Checks of all nodes of an allocation: whether programs start, what they find, and whether MPI connects the nodes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.config import Job
from mpidata.doctor.finding import Finding
from mpidata.doctor.probe import run_on_each
from mpidata.doctor.ranks import environment_here, read, read_all
from mpidata.launch.batch.allocation import Allocation, named_hosts
from mpidata.launch.batch.srun import find_srun, uses_srun
from mpidata.launch.batch.system import read_allocation
from mpidata.launch.starting.everywhere import on_one
from mpidata.launch.starting.hosts import ANSWER, silent
from mpidata.launch.starting.mpirun import find_mpirun
from mpidata.mpi.mpi_name import MpiName

__all__ = ["allocation_of", "examine_nodes", "judge"]


def allocation_of(job: Job | None, environ: Mapping[str, str]) -> Allocation | None:
    """Return the nodes that a job would use: those of `launch.hosts`, else those of the Slurm job, if there is one."""
    if job is not None and job.launch.hosts:
        return named_hosts(job.launch.hosts)
    return read_allocation(environ)


def examine_nodes(allocation: Allocation, job: Job | None, mpi: MpiName) -> list[Finding]:
    """Start a rank on each node, and judge their reports; raises LaunchError if there is no launcher."""
    wanted = job.launch.with_ if job is not None else "auto"
    program = find_srun(os.environ) if uses_srun(wanted, allocation, mpi) else find_mpirun()
    names = [node.name for node in allocation.nodes]
    with _marked(_folders(job)) as (marks, unwritable):
        what = {"marks": marks, "programs": _programs(job)}
        said = run_on_each(program, mpi, allocation, json.dumps(what))
    told = _by_name(read_all(said), names, program.name == "srun")
    asked = {name: on_one(program, mpi, allocation, name, ANSWER) for name in names if name not in told}
    alive = asked.keys() - silent(asked, os.environ).keys()
    world = read(said, "world")
    return [*unwritable, *judge(names, told, alive, world, environment_here(), said)]


def judge(
    names: Sequence[str],
    told: Mapping[str, Mapping[str, Any]],
    alive: set[str],
    world: Mapping[str, Any] | None,
    here: Mapping[str, str],
    said: str,
) -> list[Finding]:
    """Judge the reports of the nodes.

    Parameters
    ----------
    names : sequence of str
        Names of all nodes.
    told : mapping of str to mapping
        The reports of the nodes that have reported.
    alive : set of str
        Nodes without a report on which programs start.
    world : mapping or None
        MPI's report on all nodes together.
    here : mapping of str to str
        The expected environment of a node.
    said : str
        All output.
    """
    told = {name: told[name] for name in names if name in told}
    silent = [name for name in names if name not in told]
    lost = [name for name in silent if name not in alive]
    # If one node is lost, no rank may have started, so a node that answers when it is tried alone is not lost.
    if lost:
        fix = "See `sinfo -R` or the host itself; leave it out with slurm.options: {exclude: ...} or in launch.hosts."
        return [Finding("all nodes", "failed", f"no program starts on {_few(lost)}", fix)]
    if silent:
        fix = f"It must exist, under this path, on every node. The last output is: {_last(said)}"
        return [Finding("all nodes", "failed", f"{sys.executable} does not run on {_few(silent)}", fix)]
    found = [Finding("all nodes", "ok", f"{len(names)}: {_few(names)}")]
    found += _environments(told, here)
    found += _folder_findings(told)
    if world is None or world["size"] != len(names):
        fix = f"See docs/sites.md, 'Firewalls and ports'. MPI printed: {_last(said)}"
        found.append(Finding("MPI on all nodes", "failed", "it does not connect them", fix))
    else:
        each = f"{len(names)} ranks, one on each, {world['seconds']:.1f} s to join"
        found.append(Finding("MPI on all nodes", "ok", each))
    return found


def _environments(told: Mapping[str, Mapping[str, Any]], here: Mapping[str, str]) -> list[Finding]:
    problems: dict[str, list[str]] = {}
    for name, node in told.items():
        for what, value in here.items():
            other = node["environment"].get(what)
            if other != value:
                problems.setdefault(f"{what} is {other}, but {value} here", []).append(name)
        for program in node["missing"]:
            problems.setdefault(f"{program} is not an executable file", []).append(name)
    fix = "Install it in a folder that all nodes share, or load the same modules on all (slurm.setup)."
    check = "environment of all nodes"
    failed = [Finding(check, "failed", f"{what}: {_few(where)}", fix) for what, where in problems.items()]
    return failed or [Finding(check, "ok", "the same programs, mpidata and MPI")]


def _folder_findings(told: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    problems: dict[str, list[str]] = {}
    for name, node in told.items():
        for folder, problem in node["folders"].items():
            if problem:
                problems.setdefault(f"{folder} {problem}", []).append(name)
    fix = "Use a folder that all nodes share (the job file's folder; key 'output')."
    check = "folders of all nodes"
    failed = [Finding(check, "failed", f"{what}: {_few(where)}", fix) for what, where in problems.items()]
    return failed or [Finding(check, "ok", "shared, and can be written")]


def _folders(job: Job | None) -> list[Path]:
    """Return the folders that all nodes must share; for one not created yet, its existing parent."""
    if job is None:
        return [Path.cwd()]
    output = Path(os.path.abspath(job.folder / job.output)) / job.name
    return [Path(job.folder), next(path for path in (output, *output.parents) if os.path.exists(path))]


@contextlib.contextmanager
def _marked(folders: Sequence[Path]) -> Any:
    """Create a file in each folder for the nodes to find; returns their paths, and findings on other folders."""
    marks, problems = [], []
    with contextlib.ExitStack() as files:
        for folder in folders:
            try:
                file = files.enter_context(tempfile.NamedTemporaryFile(prefix=".mpidata-doctor-", dir=folder))
                marks.append(file.name)
            except OSError as error:
                what = f"{folder} cannot be written on {socket.gethostname()}: {error.strerror}"
                problems.append(Finding("folders of all nodes", "failed", what, "Choose another one (key 'output')."))
        yield marks, problems


def _programs(job: Job | None) -> list[str]:
    """Return the programs of the job that were found here."""
    if job is None:
        return []
    words = [program[0] for program in (job.trainers.program, job.solvers.program) if program is not None]
    paths = [str(Path(job.folder) / word) if os.sep in word else shutil.which(word) for word in words]
    return [path for path in paths if path is not None]


def _by_name(told: Sequence[dict[str, Any]], names: Sequence[str], by_slurm: bool) -> dict[str, dict[str, Any]]:
    """Return reports by node name: srun tells each rank its name, mpirun has put rank i on the i-th node."""
    if by_slurm:
        return {node["slurm"]: node for node in told if node.get("slurm") in names}
    return {names[node["rank"]]: node for node in told if 0 <= node.get("rank", -1) < len(names)}


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _last(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip(" -\t")]
    return lines[-1] if lines else "nothing within 60 s"
