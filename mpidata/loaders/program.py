"""The program of a loader: it joins the job and serves it."""

from __future__ import annotations

from mpidata.loaders.agreements import Agreements
from mpidata.loaders.batches import Batches
from mpidata.loaders.file_work import FileWork
from mpidata.loaders.memory import give_back_freed, keep_freed
from mpidata.loaders.serve import Worker, serve
from mpidata.loading import over_mpi
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception, fail
from mpidata.run.failsafe_output import keep_printing

__all__ = ["main"]


def main() -> int:
    """Serve until the scheduler releases this loader; returns its exit status. Initialises MPI."""
    keep_printing()
    end_on_exception(None, lambda error, sentence: None)  # the scheduler notices the end of the process
    import torch
    from mpi4py import MPI

    library = load_checked()
    check(library, library.mpidata_loader_open(MPI.COMM_WORLD.py2f(), constants.ROLE_LOADER))
    check(library, library.mpidata_loader_begin())
    keep_freed()
    torch.set_num_threads(1)  # like torch's own workers, because there is one loader per core
    requests = over_mpi.MpiRequests(library)
    try:
        serve(requests, _workers(requests))
        while requests.rest():  # with no dataset in memory
            give_back_freed()
            serve(requests, _workers(requests))
    except SystemExit:  # otherwise the end of Python would finalise MPI, which waits for the other ranks
        fail("mpidata: the dataset has ended this loader with sys.exit().")
    requests.close()
    return 0


def _workers(requests: over_mpi.MpiRequests) -> list[Worker]:
    return [Agreements(requests), Batches(requests), FileWork(requests)]
