"""Whether a script runs outside a job, and the notice about it."""

from __future__ import annotations

import functools
import os
import sys

__all__ = ["in_job", "say_no_job"]


def in_job() -> bool:
    """Return whether this process is part of a job, or runs under `mpidata try`.

    Notes
    -----
    Only reads the environment: does not join the job, initialize MPI or import torch.
    """
    return bool(os.environ.get("MPIDATA_RUN"))


@functools.cache
def say_no_job() -> None:
    """Print one notice to stderr that this process is not part of a job; under torchrun only in the first process."""
    if os.environ.get("RANK", "0") == "0":
        print(
            "mpidata: This process is not part of a job (MPIDATA_RUN is not set): DataLoader and FileDataset read in "
            "this process, and register, report, picture and publish have no effect. `mpidata run job.yaml` starts "
            "a job.",
            file=sys.stderr,
            flush=True,
        )
