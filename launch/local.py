"""`mpidata run JOB` on one machine: start the job, show it, and see to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mpidata.config import load_job
from mpidata.launch.cleanup import make_folders, remove_abandoned
from mpidata.launch.command import command_line, find_mpirun, mpirun_command, mpirun_environment, shim_path
from mpidata.launch.outcome import settle
from mpidata.launch.progress import Progress
from mpidata.launch.result import show_outcome
from mpidata.launch.supervise import Signals, supervise
from mpidata.plan import Plan
from mpidata.run_folder import next_run, prepare_run

__all__ = ["print_command", "run_local"]


def print_command(path: str, overrides: Sequence[str], console: Console) -> None:
    """Print the command that `run_local` would start, and where the run folder would be; nothing is made.

    Raises
    ------
    MpidataError
        The job file is bad, or mpidata or its MPI is not installed.
    """
    job = load_job(path, overrides)
    plan = Plan.of(job, next_run(job))
    command = mpirun_command(find_mpirun(), shim_path(), plan)
    console.print(
        Text(f"# {plan.world} ranks: {job.layout}; run folder {plan.run}"),
        soft_wrap=True,
    )
    console.print(Text(command_line(command, mpirun_environment(os.geteuid() == 0))), soft_wrap=True)


def run_local(path: str, overrides: Sequence[str], console: Console, errors: Console) -> int:
    """Run a job on this machine.

    Parameters
    ----------
    path : str
        The job file.
    overrides : sequence of str
        Keys to set, `a.b=value`.
    console, errors : rich.console.Console
        For the display and the summary, and for what went wrong.

    Returns
    -------
    int
        Exit status: 0 complete or stopped by the training scripts, 1 failed, 128 + signal if that stopped it.

    Raises
    ------
    MpidataError
        The job could not be started.

    Notes
    -----
    Blocks until the job has ended and none of its processes is left. For the main thread, as it takes signals.
    """
    job = load_job(path, overrides)
    mpirun, shim = find_mpirun(), shim_path()
    with Signals() as signals:
        started = time.monotonic()
        run, plan = prepare_run(job)
        remove_abandoned()
        with make_folders() as folders:
            variables = mpirun_environment(os.geteuid() == 0, folders.session, folders.segments, os.environ)
            with Progress(run.progress, run.log(plan, 1), console) as progress:
                console.print(Text(f"{job.name}: {plan.world} ranks, run folder {run.path}"), soft_wrap=True)
                ending = supervise(run, mpirun_command(mpirun, shim, plan), variables, signals, progress.look)
        outcome = settle(run, plan, ending, time.monotonic() - started)
    show_outcome(outcome, console, errors)
    return outcome.exit_status
