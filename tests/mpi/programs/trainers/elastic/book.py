"""What the scripts beside this file write down, and how they die."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


class Book:
    """Lines of JSON in the run folder, each there whatever happens next."""

    def __init__(self, trainer: int) -> None:
        self._path = Path(os.environ["MPIDATA_RUN"], f"book-{trainer}.jsonl")
        self.resumes = self._path.exists()
        self._file = self._path.open("a")

    def note(self, **what: object) -> None:
        """Write a line."""
        print(json.dumps(what), file=self._file, flush=True)


def resumes() -> bool:
    """Whether the run goes on from a checkpoint: a trainer may do so that was not in the start before."""
    return "checkpoint 0" not in Path(os.environ["MPIDATA_RUN"], "private", "plan").read_text().split("\n")


def mixed(numbers: Any) -> Any:
    """Make other numbers of whole ones, below 2^32: the means of some of them are not those of others by chance."""
    once = numbers * 2654435761 % (1 << 32)
    return (once ^ (once >> 15)) * 739982445 % (1 << 32)  # numbers in a row are not in a row then


def end(how: str) -> None:
    """Die: by the name of a signal, or `exit` and `leave` (0), `fails` and `quits` (0, sys.exit), `abort`, `raise`.

    `saves`: as `quits`, four seconds later.
    """
    if how == "saves":
        time.sleep(4)
    if how == "raise":
        raise ValueError("as it was told to")
    if how == "exit":
        os._exit(3)
    if how in ("fails", "quits", "saves"):
        sys.exit(3 * (how == "fails"))
    if how == "leave":
        os._exit(0)
    if how == "abort":
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(5)
    os.kill(os.getpid(), getattr(signal, how))
