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
    """Return the command by which `program`, a srun or mpirun, runs a command on one host only."""
    if program.name == "srun":
        return srun_on_one(program, allocation, host, command)
    if mpi.name == OPEN_MPI:
        return [str(program), "--host", f"{host}:1", "-n", "1", "--bind-to", "none", *command]
    return [str(program), "-hosts", host, "-n", "1", *command]


def on_each(program: Path, mpi: MpiName, allocation: Allocation, hosts: Path, command: Sequence[str]) -> list[str]:
    """Return a command that runs another one as an MPI job with one rank on each host.

    Parameters
    ----------
    program : Path
        The srun or mpirun.
    mpi : MpiName
        The MPI that it belongs to.
    allocation : Allocation
        Its hosts: rank i runs on the i-th, except with srun, which uses its own order.
    hosts : Path
        File with the names of the hosts, one per line.
    command : sequence of str
        The program and its arguments.
    """
    if program.name == "srun":
        return srun_on_each(program, mpi, allocation, command)
    options = mpirun_options(False, hosts) if mpi.name == OPEN_MPI else ["-f", str(hosts), "-ppn", "1"]
    return [str(program), "-n", str(len(allocation.nodes)), *options, *command]
