"""Commands that run a program on one host of an allocation, or once on each of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.starting.command import mpirun_options
from mpidata.native.mpi_name import OPEN_MPI, MpiName

__all__ = ["PLUGINS", "on_each", "on_one", "slurm_environment", "uses_srun"]

PLUGINS = {"Open MPI": "pmix", "MPICH": "pmi2", "MVAPICH": "pmi2", "Intel MPI": "pmi2", "Cray MPICH": "cray_shasta"}
"""Slurm's plugin for each MPI."""


def uses_srun(wanted: str, allocation: Allocation, mpi: MpiName) -> bool:
    """Whether srun, not mpirun, starts the ranks, with `wanted` for `launch.with`."""
    if not allocation.job:
        return False
    return wanted == "srun" or len(allocation.components) > 1 or (wanted == "auto" and mpi.name != OPEN_MPI)


def slurm_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that undo `sbatch --export=NONE`, after which mpirun's daemons would have no PATH."""
    return {"SLURM_EXPORT_ENV": "ALL"} if "SLURM_EXPORT_ENV" in environ else {}


def on_one(program: Path, mpi: MpiName, allocation: Allocation, host: str, command: Sequence[str]) -> list[str]:
    """Run a command on one host and nothing else, by `program`, a srun or mpirun."""
    if program.name == "srun":
        components = allocation.components
        number = next((i for i, nodes in enumerate(components) if any(node.name == host for node in nodes)), 0)
        group = [f"--het-group={number}"] if len(components) > 1 else []
        return [str(program), *group, "-N1", "-n1", f"--nodelist={host}", "--overlap", *command]
    if mpi.name == OPEN_MPI:
        return [str(program), "--host", f"{host}:1", "-n", "1", "--bind-to", "none", *command]
    return [str(program), "-hosts", host, "-n", "1", *command]


def on_each(program: Path, mpi: MpiName, allocation: Allocation, hosts: Path, command: Sequence[str]) -> list[str]:
    """Run a command as the ranks of one MPI job, one on each host.

    Parameters
    ----------
    program : Path
        The srun or mpirun.
    mpi : MpiName
        To which it belongs.
    allocation : Allocation
        Its hosts: rank i is on the i-th, but for srun, which puts them into an order of its own.
    hosts : Path
        File with the names of the hosts, one a line.
    command : sequence of str
        The program and its arguments.
    """
    count = len(allocation.nodes)
    if program.name != "srun":
        options = mpirun_options(False, hosts) if mpi.name == OPEN_MPI else ["-f", str(hosts), "-ppn", "1"]
        return [str(program), "-n", str(count), *options, *command]
    plugin = [f"--mpi={PLUGINS[mpi.name]}"] if mpi.name in PLUGINS else []
    line = [str(program), *plugin]
    for number, nodes in enumerate(allocation.components):
        line += [":"] if number else []
        line += [f"--het-group={number}"] if len(allocation.components) > 1 else []
        line += [f"-N{len(nodes)}", f"-n{len(nodes)}", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none", *command]
    return line
