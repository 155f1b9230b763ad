"""mpidata: a C solver and an ordinary loop over MPIStreamDataset, started by `mpidata run`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from benchmarks.build import built
from benchmarks.contender import BATCH, ROOT, BenchmarkError, Cell, Result, run_processes

_TRAINER = ROOT / "benchmarks" / "programs" / "trainer.py"


@dataclasses.dataclass(frozen=True)
class Stream:
    """A job with one trainer."""

    name: str
    about: str
    policy: str = "fifo"
    count: str = "once"  # what the trainer counts, see programs/trainer.py
    put: str = "put"
    groups: int = 1
    ranks: int = 1

    @property
    def row(self) -> str:
        """Row in the tables: one per contender."""
        return self.name

    def missing(self) -> str | None:
        """Build the solver; return the error if that fails."""
        try:
            built("solver")
        except BenchmarkError as error:
            return str(error)
        return None

    def measure(self, cell: Cell) -> Result:
        """Run the job."""
        # Each group sends its part of the samples before the clock starts.
        own = dataclasses.replace(cell, warm=-(-cell.warm // self.groups // BATCH) * BATCH)
        own.write()
        (cell.folder / "job.yaml").write_text(self.job(own))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        return run_processes([["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]], cell)

    def job(self, cell: Cell) -> str:
        """Return the job file; all other keys have mpidata's defaults."""
        watermark = f", watermark: {BATCH}" if self.policy == "reservoir" else ""
        return f"""\
trainers: {{ranks: 1, program: [python, {str(_TRAINER)!r}, {str(cell.folder)!r}, {self.count}, "{self.groups}"]}}
solvers:
  groups: {self.groups}
  ranks_per_group: {self.ranks}
  program: [{str(built("solver"))!r}, {str(cell.folder)!r}, "{cell.elements}", "{cell.warm}", {self.put}]
parameters: {{count: {self.groups}, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: [{cell.elements}]}}}}
buffer: {{policy: {self.policy}, capacity: {cell.queue}{watermark}}}
"""


CONTENDERS = [
    Stream("mpidata fifo", "`put`; batches are returned without a copy"),
    Stream(
        "mpidata reservoir", "`put`; only samples drawn for the first time count", policy="reservoir", count="fresh"
    ),
    Stream("mpidata reservoir, all draws", "the same; repeated samples also count", policy="reservoir", count="draws"),
    Stream("mpidata iput", "fifo; arrays are lent instead of copied", put="iput"),
    Stream("mpidata 3 solvers", "fifo, three groups of one rank", groups=3),
    Stream("mpidata blocks", "fifo, one group of two ranks, each with half of every sample", ranks=2),
]
