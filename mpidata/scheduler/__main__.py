"""The program of rank 0: the scheduler of the run folder in MPIDATA_RUN. Run with `python -m mpidata.scheduler`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from mpidata.errors import MpidataError, RankDiedError, unforeseen
from mpidata.figures.machine import describe_machine
from mpidata.mpi.network import find_fabrics, look_at_process, slower_than_it_could_be
from mpidata.native.linked_mpi import mpi_of_mpi4py
from mpidata.run import deadlines
from mpidata.run.event_log import as_json, write_json
from mpidata.run.exits import read_exit_note
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.side_channel import say_aside
from mpidata.sampling.parameters_file import read_parameters
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.messages import LibraryMessages
from mpidata.scheduler.scheduler import Scheduler
from mpidata.scheduler.simulations import Simulations

__all__ = ["main", "write_failure"]


def main() -> int:
    """Run the scheduler of the run folder in MPIDATA_RUN; returns its exit status. Initialises MPI."""
    if not os.environ.get("MPIDATA_RUN"):
        print("MPIDATA_RUN is not set. The scheduler is started by `mpidata run job.yaml`.", file=sys.stderr)
        return 2
    run = RunFolder(Path(os.environ["MPIDATA_RUN"]))
    os.umask(os.umask(0o077) | 0o022)  # others must not write the files of the run folder
    # Python's own handler for Ctrl-C would have to wait until all ranks have joined.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    messages = None
    try:
        plan = Plan.read(run.plan)
        parameters, drawn = read_parameters(
            run.parameters, plan.parameters, plan.simulations, plan.validation, plan.texts
        )
        learner, joined = None, LibraryMessages(plan)
        if drawn is not None:
            from mpidata.sampling.learner.learner import make_learner  # loads pydantic
            from mpidata.sampling.learner.over_mpi import AskingOverMpi, LearnersOverMpi

            asked = AskingOverMpi(joined), LearnersOverMpi(joined)
            learner = make_learner(run, plan, parameters, drawn, *asked)
        messages = joined
        messages.open()
        mpi = mpi_of_mpi4py()
        with contextlib.suppress(OSError):
            write_json(run.machine, describe_machine(mpi))
        spawns = "spawn" in (plan.start, plan.loader_start)
        for sentence in slower_than_it_could_be(look_at_process(), find_fabrics(), messages.one_host, spawns, mpi):
            with contextlib.suppress(OSError):
                print(f"mpidata: {sentence}", flush=True)
        scheduler = Scheduler(plan, parameters, messages, learner=learner)
        if learner is not None:
            learner.start(scheduler.simulations.queue)
    except Exception as error:  # no exception may reach MPI_Finalize, in which all others would wait
        if not (isinstance(error, RankDiedError) and _has_exit_note(run)):
            write_failure(run.path, _sentence(error))
        run.note_over()
        if messages is not None:
            messages.abort(1)
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, scheduler.interrupt)
    scheduler.run()
    if messages.spawning:
        sys.stdout.flush()
        os._exit(0)  # a thread is in MPI_Comm_spawn, during which MPI_Finalize is not allowed
    return 0


def write_failure(run: Path, error: str) -> None:
    """Print why a run failed before all ranks had joined, and write its summary.

    Parameters
    ----------
    run : Path
        The run folder.
    error : str
        The sentence.
    """
    with contextlib.suppress(OSError):
        print(f"mpidata: {error}", file=sys.stderr, flush=True)
    conclusion: Conclusion = {"status": "failed", "error": error, "reason": None}
    figures = Figures(trainers=0, capacity=1)
    summary = figures.summary(run, conclusion, Simulations(0, trainers=0), None, seconds=0.0)
    try:
        write_json(RunFolder(run).summary, summary, durable=True)
    except OSError:
        say_aside(as_json(summary))


def _sentence(error: Exception) -> str:
    if isinstance(error, (MpidataError, OSError)):
        return str(error)
    with contextlib.suppress(OSError):
        traceback.print_exception(error)
    return unforeseen("The scheduler", error, "the log of rank 0")


def _has_exit_note(run: RunFolder) -> bool:
    """Whether a rank has left an exit note: that is then the cause, not the error that MPI raised here."""
    deadline = time.monotonic() + deadlines.WHY_LOST_IN_START_S
    while time.monotonic() < deadline:
        ends = [read_exit_note(path) for path in run.rank_exits()]
        if any(end is not None and not end.told for end in ends):
            return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(main())
