"""A rank under mpidata-rank whose program sets its flags and gives its beats by itself; no MPI."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from launch_job import clean_environment, make_plan

JOINED, LEFT, FINALIZING, LOST, STARTING = 1, 2, 4, 8, 64
LOADER = {"world": 8, "loaders": 1, "loader_timeout_s": 0.5, "loader_start_timeout_s": 10}

# A program with flags and a beat, which then does what `then` says.
PROGRAM = """
import os, signal, struct, sys, time
fd = int(os.environ["MPIDATA_PULSE"].partition(":")[0])
def tell(flags, beat=0):
    os.pwrite(fd, struct.pack("=IQ", flags, beat), 4)
def beat():
    os.pwrite(fd, struct.pack("=Q", time.monotonic_ns()), 8)
def work(seconds):
    time.sleep(seconds)
def hang():
    time.sleep(60)
tell({flags})
{then}
"""


class PulseRank:
    """A shim with its program, in a process group of its own."""

    def __init__(
        self, shim: Path, folder: Path, then: str, flags: int = JOINED, rank: int = 3, words: str = "", **plan: Any
    ) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "program.py").write_text(PROGRAM.format(flags=flags, then=then))
        program = [sys.executable, "-S", str(folder / "program.py")]
        made = make_plan(
            folder, dict.fromkeys(("trainer", "solver", "scheduler", "loader", "server", "mate"), program), **plan
        )
        self.run = made.run
        size = made.world if not words else 1 if "--loader" in words else 2
        variables = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size)}
        self.started, self._began = time.monotonic(), time.time()
        self.process = subprocess.Popen(
            [str(shim), str(self.run), *words.split()],
            env=clean_environment(**variables),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self) -> tuple[int, dict[str, Any]]:
        """Wait for the end; `seconds` is then the time until the exit note, or until now if there is none."""
        _, self.stderr = self.process.communicate(timeout=20)
        records = [path for path in (self.run / "exits").iterdir() if not path.suffix]
        self.seconds = records[0].stat().st_mtime - self._began if records else time.monotonic() - self.started
        return self.process.returncode, json.loads(records[0].read_text()) if records else {}
