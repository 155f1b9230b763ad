"""Commands that run a program on one host of an allocation, or once on each of its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.srun import srun_on_each, srun_on_one
from mpidata.launch.starting.command import mpirun_options
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName

__all__ = ["on_each", "on_one"]


def on_one(program: Path, mpi: MpiName, allocation: Allocation, host: str, command: Sequence[str]) -> list[str]:
    """Run a command on one host and nothing else, by `program`, a srun or mpirun."""
    if program.name == "srun":
        return srun_on_one(program, allocation, host, command)
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
    if program.name == "srun":
        return srun_on_each(program, mpi, allocation, command)
    options = mpirun_options(False, hosts) if mpi.name == OPEN_MPI else ["-f", str(hosts), "-ppn", "1"]
    return [str(program), "-n", str(len(allocation.nodes)), *options, *command]
