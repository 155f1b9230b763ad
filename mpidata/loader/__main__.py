"""The program of a loader, which joins the job and serves it. Run with `python -m mpidata.loader`."""

from __future__ import annotations

import sys

from mpidata.native.library import AGAIN, END, check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception
from mpidata.run.lasting import keep_printing

__all__ = ["main"]

# Longest time in the library while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2


def main() -> int:
    """Serve until the scheduler lets this loader go; returns its exit status. Initialises MPI."""
    keep_printing()
    end_on_exception(None, lambda error, sentence: None)  # its end alone tells the scheduler
    from mpi4py import MPI

    library = load_checked()
    check(library, library.mpidata_loader_open(MPI.COMM_WORLD.py2f()))
    while (status := library.mpidata_loader_wait(_SLICE_S)) == AGAIN:
        pass
    check(library, 0 if status == END else status)
    check(library, library.mpidata_loader_close())
    return 0


if __name__ == "__main__":
    sys.exit(main())
