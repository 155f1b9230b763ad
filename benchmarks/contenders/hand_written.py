"""The ceiling: hand-written MPI in C between two ranks, and memcpy within one process."""

from __future__ import annotations

import dataclasses

from benchmarks.build import built, mpirun
from benchmarks.contender import BenchmarkError, Cell, Result, run_processes

_KEEP = {
    "gather": ("MPI, gathered", "the limit: hand-written C, its best variant; samples are copied into batches"),
    "hold": ("MPI, not gathered", "the same without the copy: a batch is 32 slots, which are released together"),
    "drop": ("MPI, no batches", "the same, but each slot is released at once, so the memory stays in the cache"),
}


def _not_built(program: str) -> str | None:
    try:
        built(program)
    except BenchmarkError as error:
        return str(error)
    return None


@dataclasses.dataclass(frozen=True)
class HandWritten:
    """One way to send, receive and keep batches; see programs/ceiling.c."""

    send: str
    receive: str
    keep: str
    pages: str = "small"

    @property
    def name(self) -> str:
        """A unique name for each way."""
        return f"MPI {self.keep}: {self.send}, {self.receive}" + (", huge pages" if self.pages == "huge" else "")

    @property
    def row(self) -> str:
        """Row in the tables, by what is done with a batch."""
        return _KEEP[self.keep][0] + (", huge pages" if self.pages == "huge" else "")

    @property
    def about(self) -> str:
        """What is done with a batch."""
        if self.pages == "huge":
            return f"the same as {_KEEP[self.keep][0]}, with all memory in huge pages, as in mpidata"
        return _KEEP[self.keep][1]

    def missing(self) -> str | None:
        """Build the program; return the error if that fails."""
        return _not_built("ceiling")

    def measure(self, cell: Cell) -> Result:
        """Run two ranks."""
        numbers = [str(cell.sample_bytes), str(cell.warm), str(cell.seconds)]
        program = [str(built("ceiling")), str(cell.folder), *numbers, self.send, self.receive, self.keep, self.pages]
        command, variables = mpirun(2, program, cell)
        return run_processes([command], cell, variables)


class MemoryCopy:
    """memcpy of batches, in one process."""

    name = row = "memcpy"
    about = "samples are copied into batches, no transport"

    def missing(self) -> str | None:
        """Build the program; return the error if that fails."""
        return _not_built("copy")

    def measure(self, cell: Cell) -> Result:
        """Run the program."""
        return run_processes([[str(built("copy")), str(cell.folder), str(cell.sample_bytes), str(cell.seconds)]], cell)


_WAYS = [("isend", "prepost"), ("isend", "probe"), ("issend", "probe")]
CONTENDERS = [
    *(HandWritten(*way, keep) for keep in _KEEP for way in _WAYS),
    *(HandWritten("isend", "probe", keep, "huge") for keep in ("gather", "hold")),
    MemoryCopy(),
]
