"""Scripts that run outside a job: whether they do, and the one line about it."""

from __future__ import annotations

import functools
import os
import sys

__all__ = ["in_job", "say_no_job"]


def in_job() -> bool:
    """Return whether this process is part of a job, or runs under `mpidata try`.

    Notes
    -----
    Looks at the environment only: does not join the job, initialises no MPI and imports no torch.
    """
    return bool(os.environ.get("MPIDATA_RUN"))


@functools.cache
def say_no_job() -> None:
    """Print once to stderr that this is no job; of the processes of torchrun only the first one does."""
    if os.environ.get("RANK", "0") == "0":
        print(
            "mpidata: This process is not part of a job (MPIDATA_RUN is not set): DataLoader and FileDataset read in "
            "this process, and register, report and publish have no effect. `mpidata run job.yaml` starts a job.",
            file=sys.stderr,
            flush=True,
        )
