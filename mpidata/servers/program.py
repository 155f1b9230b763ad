"""The program of a parameter server: it joins the job and serves its trainers."""

from __future__ import annotations

import os
from pathlib import Path

from mpidata.native.library import check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception
from mpidata.run.failsafe_output import keep_printing
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.servers.messages import join_everyone
from mpidata.servers.serving import Serving

__all__ = ["main"]


def main() -> int:
    """Serve until all trainers have left; returns the exit status. Initialises MPI."""
    keep_printing()
    import torch  # noqa: F401  # before all ranks wait for this one
    from mpi4py import MPI

    library = load_checked()
    end_on_exception(None, lambda _, sentence: library.mpidata_beat_at(f"raised {sentence.rstrip('.')}".encode()))
    check(library, library.mpidata_server_open(MPI.COMM_WORLD.py2f()))
    plan = Plan.read(RunFolder(Path(os.environ["MPIDATA_RUN"])).plan)
    try:
        Serving(join_everyone(plan), plan.trainers_at_least > 0, library.mpidata_beat).serve()
    except MPI.Exception as error:
        print(f"A trainer or a server has died, so this server waits for the end of the job: {error}", flush=True)
        library.mpidata_server_await_end()
    check(library, library.mpidata_server_close())
    return 0
