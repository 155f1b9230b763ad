"""Shared code of all contenders: one measurement, and how its processes are run and ended."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.gate import Gate

__all__ = [
    "BATCH",
    "ROOT",
    "BenchmarkError",
    "Cell",
    "Contender",
    "Peer",
    "Result",
    "peer_python",
    "run_processes",
    "run_role",
]

ROOT = Path(__file__).resolve().parents[1]
BATCH = 32
_PEERS = ROOT / ".venv-bench" / "bin" / "python"
_ENDING_S = 15.0


class BenchmarkError(Exception):
    """A measurement failed."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes
    ----------
    folder : Path
        For the measurement's files; empty at the start.
    sample_bytes : int
        Bytes of one sample, float32 elements.
    seconds : float
        Time from the opening of the gate; a batch that is under way at its end still counts, with its time.
    warm : int
        Samples that each producer sends before the gate opens, a multiple of the batch.
    queue : int
        Samples that may wait between producer and consumer, if the contender can limit them.
    setting : str
        A setting of the contender.
    start_s : float
        Time limit for the start of its processes.
    """

    folder: Path
    sample_bytes: int
    seconds: float
    warm: int
    queue: int
    setting: str = ""
    start_s: float = 60.0

    @classmethod
    def plan(cls, folder: Path, sample_bytes: int, seconds: float) -> Cell:
        """Return a measurement with queues of 64 MiB, 64 to 1024 samples."""
        queue = min(1024, max(2 * BATCH, (64 << 20) // sample_bytes))
        return cls(folder, sample_bytes, seconds, 2 * queue, queue)

    @property
    def elements(self) -> int:
        """Number of float32 elements in a sample."""
        return self.sample_bytes // 4

    @property
    def limit_s(self) -> float:
        """Seconds after which a process of the measurement ends itself."""
        return self.seconds + self.start_s

    def write(self) -> None:
        """Write the files that the processes read into the folder."""
        values = dataclasses.asdict(self) | {"folder": str(self.folder)}
        (self.folder / "cell.json").write_text(json.dumps(values))
        Gate.make(self.folder)

    @classmethod
    def read(cls, folder: Path) -> Cell:
        """Read the measurement that `write` stored."""
        values = json.loads((folder / "cell.json").read_text())
        return cls(**(values | {"folder": folder}))


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of a measurement: samples that arrived in batches while the clock ran, and the time in seconds."""

    samples: int
    seconds: float


class Contender(Protocol):
    """A way to bring samples from a producer to a training loop."""

    @property
    def name(self) -> str:
        """A unique name."""

    @property
    def row(self) -> str:
        """Row in the tables; if several contenders share a row, the best one counts."""

    @property
    def about(self) -> str:
        """A description with its settings, without a full stop."""

    def missing(self) -> str | None:
        """Return what is missing on this machine, or None; may build programs."""

    def measure(self, cell: Cell) -> Result:
        """Take one measurement; raise BenchmarkError on failure."""


def run_processes(
    commands: Sequence[Sequence[str]], cell: Cell, environment: Mapping[str, str] | None = None
) -> Result:
    """Run the processes of a measurement; the last one writes the result, then the others end by themselves.

    Each has its own session. When time is up, all are killed with everything that they started.
    """
    processes: list[subprocess.Popen[bytes]] = []
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    deadline = time.monotonic() + cell.limit_s + _ENDING_S
    try:
        for number, command in enumerate(commands):
            with open(cell.folder / f"log-{number}.txt", "wb") as log:
                process = subprocess.Popen(
                    command, cwd=cell.folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
            processes.append(process)
        _watch(processes, cell, deadline)
        return _result(processes, cell)
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _watch(processes: Sequence[subprocess.Popen[bytes]], cell: Cell, deadline: float) -> None:
    while processes[-1].poll() is None:
        if time.monotonic() > deadline or any(process.poll() for process in processes):
            raise BenchmarkError(_logs(processes, cell))
        time.sleep(0.02)
    ending = time.monotonic() + _ENDING_S
    while any(process.poll() is None for process in processes) and time.monotonic() < ending:
        time.sleep(0.02)


def _result(processes: Sequence[subprocess.Popen[bytes]], cell: Cell) -> Result:
    try:
        result = Result(**json.loads((cell.folder / "result.json").read_text()))
    except (OSError, ValueError):
        raise BenchmarkError(_logs(processes, cell)) from None
    if processes[-1].returncode != 0:
        raise BenchmarkError(_logs(processes, cell))
    return result


def _logs(processes: Sequence[subprocess.Popen[bytes]], cell: Cell) -> str:
    ends = [log.read_text(errors="replace")[-600:].strip() for log in sorted(cell.folder.glob("log-*.txt"))]
    statuses = [process.poll() for process in processes]
    return " | ".join([f"No result; exit statuses {statuses}", *(end for end in ends if end)])


def peer_python() -> str:
    """Return the Python of the peers' environment."""
    return str(_PEERS)


@dataclasses.dataclass(frozen=True)
class Peer:
    """A contender whose producer and consumer are Python processes in the peers' environment.

    Attributes
    ----------
    module : str
        File in `contenders`, run with `produce` or `consume` and the folder.
    needs : str
        Module that must be installed.
    row : str
        Row in the tables.
    setting : str
        Value of `Cell.setting` for its processes.
    """

    name: str
    about: str
    module: str
    needs: str
    row: str
    setting: str = ""

    def missing(self) -> str | None:
        """Return what is missing if the peers' environment lacks the module."""
        try:
            found = subprocess.run([peer_python(), "-c", f"import {self.needs}"], capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"no environment for peers ({error})"
        return None if found.returncode == 0 else f"no Python module {self.needs}"

    def measure(self, cell: Cell) -> Result:
        """Run the processes."""
        return run_processes(self.commands(cell), cell)

    def commands(self, cell: Cell) -> list[list[str]]:
        """Command lines of the processes, the consumer last."""
        start = [peer_python(), "-m", f"benchmarks.contenders.{self.module}"]
        return [[*start, role, str(cell.folder), self.setting] for role in ("produce", "consume")]


def run_role(roles: Mapping[str, Callable[[Cell, Gate], None]]) -> None:
    """Run one process of a peer with a time limit; its arguments are role, folder and setting."""
    role, folder, setting = sys.argv[1:]
    cell = dataclasses.replace(Cell.read(Path(folder)), setting=setting)
    signal.alarm(int(cell.limit_s))
    roles[role](cell, Gate(cell.folder, cell.limit_s))
