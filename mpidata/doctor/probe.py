"""Programs that the doctor starts, each with a time limit and without leaving processes behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.doctor.ranks import read
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.system import batch_variables
from mpidata.launch.starting.command import mpirun_environment, mpirun_options
from mpidata.launch.starting.everywhere import on_each
from mpidata.launch.starting.folder.temporary import make_folders
from mpidata.launch.watching.processes import end_processes
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName
from mpidata.run_module import module_command

__all__ = ["ask", "ask_ranks", "run_on_each", "slurm_plugins"]

_RANKS_S = 20.0
_PROCESS_S = 60.0
_NODES_S = 60.0


def ask(what: str) -> tuple[dict[str, Any] | None, str]:
    """Run `mpidata.doctor.ranks` in its own process; returns its report (None: none) and all its output."""
    output = _run(module_command("mpidata.doctor.ranks", what), {}, _PROCESS_S)
    return read(output), output


def ask_ranks(what: str, ranks: int, mpirun: Path, mpi: MpiName, ulfm: bool) -> tuple[dict[str, Any] | None, str]:
    """Run `mpidata.doctor.ranks` under mpirun like a job; returns the report of rank 0 and all output."""
    started, is_open_mpi = time.monotonic(), mpi.name == OPEN_MPI
    with make_folders(Path(tempfile.gettempdir())) as folders:
        variables: dict[str, str] = {}
        if is_open_mpi:
            root, old = os.geteuid() == 0, mpi.major == "4"
            variables = mpirun_environment(root, folders.session, folders.segments, os.environ, old)
        command = [str(mpirun), "-n", str(ranks), *(mpirun_options(ulfm) if is_open_mpi else [])]
        output = _run([*command, *module_command("mpidata.doctor.ranks", what)], variables, _RANKS_S)
    result = read(output)
    if result is not None:
        result.setdefault("seconds", time.monotonic() - started)
    return result, output


def run_on_each(program: Path, mpi: MpiName, allocation: Allocation, what: str) -> str:
    """Run `mpidata.doctor.ranks node WHAT` once on each node, as the ranks of one job; returns all output."""
    with make_folders(Path(tempfile.gettempdir())) as folders, tempfile.NamedTemporaryFile("w") as hosts:
        hosts.writelines(f"{node.name}\n" for node in allocation.nodes)
        hosts.flush()
        variables = batch_variables(os.environ, beside=True)
        if mpi.name == OPEN_MPI:
            root, old = os.geteuid() == 0, mpi.major == "4"
            variables |= mpirun_environment(root, folders.session, None, os.environ, old, one_host=False)
        command = module_command("mpidata.doctor.ranks", "node", what)
        return _run(on_each(program, mpi, allocation, Path(hosts.name), command), variables, _NODES_S)


def slurm_plugins() -> str | None:
    """Return the output of `srun --mpi=list`; None if there is no srun."""
    if shutil.which("srun") is None:
        return None
    return _run(["srun", "--mpi=list"], {}, _RANKS_S)


def _run(command: Sequence[str], variables: Mapping[str, str], timeout_s: float) -> str:
    """Run a program and return its output; at its end, or the timeout, kill all processes that it started."""
    # This variable identifies its processes, even if they hang; none of them joins a job.
    mark = Path(tempfile.gettempdir(), f"mpidata-doctor-{os.getpid()}-{time.monotonic_ns()}")
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **variables, "MPIDATA_RUN": str(mark)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return str(error)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            end_processes(mark)
        output.seek(0)
        return output.read().decode(errors="replace")
