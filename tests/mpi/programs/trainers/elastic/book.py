"""The log of the scripts beside this file, and the ways in which they end."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_BEGAN = time.time()


class Book:
    """Lines of JSON in the run folder, each flushed at once."""

    def __init__(self, trainer: int) -> None:
        self._path = Path(os.environ["MPIDATA_RUN"], f"book-{trainer}.jsonl")
        self.resumes = self._path.exists()
        self._file = self._path.open("a")

    def note(self, **what: object) -> None:
        """Write a line."""
        print(json.dumps(what), file=self._file, flush=True)


def resumes() -> bool:
    """Return whether the run resumes from a checkpoint, also for a trainer that was not in the previous start."""
    return "checkpoint 0" not in Path(os.environ["MPIDATA_RUN"], "private", "plan").read_text().split("\n")


def wait_for_all() -> None:
    """Wait until all ranks of this start have joined, by the scheduler's event: MPI survives no death before."""
    path = Path(os.environ["MPIDATA_RUN"], "events.jsonl")
    while not any(
        event["event"] == "start" and event["time"] > _BEGAN
        for event in map(json.loads, path.read_text().split("\n")[:-1])
    ):
        time.sleep(0.01)


def mixed(numbers: Any) -> Any:
    """Return hashes below 2^32 of integers, so that the means of different sets are not equal by chance."""
    once = numbers * 2654435761 % (1 << 32)
    return (once ^ (once >> 15)) * 739982445 % (1 << 32)  # scatters consecutive numbers


def end(how: str) -> None:
    """End by the signal of this name, by `exit` or `leave` (0), `fails` or `quits` (sys.exit; 0), `abort`, `raise`.

    `saves`: like `quits`, four seconds later.
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
