"""The sides of a pair: a checkout's job or hand-written code, each of which moves samples when it is its turn."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks import rows
from benchmarks.build import built, mpirun
from benchmarks.contender import ROOT, BenchmarkError, Cell

__all__ = ["BY_HAND", "CONSTANT", "LOADING", "ROWS", "SPECIAL", "STEPS", "Side", "Way"]

CONSTANT, STEPS = 1 << 20, 100  # bytes of a constant and steps of a simulation, as in turns.c
ROWS = ("numbered", "dealt", "random", "strided")
LOADING = ("batches", "rows")
SPECIAL = ("carried", "varying", "constants", "lent", "arrays", "halves", "fresh")
# Hand-written code: how programs/ceiling.c keeps batches and in which pages; None for another program.
BY_HAND: dict[str, tuple[str, str] | None] = {
    "gathered": ("gather", "small"),
    "held": ("hold", "huge"),
    "staged": ("stage", "huge"),
    "sampled": None,
    "parcels": None,
    "rows sent": None,
}
_PROGRAMS = ROOT / "benchmarks" / "programs"
_STOP, _TURN, _DONE, _SECONDS, _COUNT = 1, 6, 7, 8, 9  # words of the gate, as in turns.py
_TURN_LIMIT_S, _END_LIMIT_S = 60.0, 30.0
_LONGEST_S = 3600.0
_PAUSE_S = 1e-3


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to move samples.

    Attributes
    ----------
    checkout : Path
        The checkout whose job runs.
    changes : sequence of str
        Changes to its job file: ``key=value``.
    special : str
        One of SPECIAL: a `carried` solver, `varying` samples, `lent` arrays or 8 `arrays` that are put in turn, two
        ranks that put `halves`, a count of `fresh` samples only, or simulations with `constants`; or short
        `simulations` without constants; or four ranks that put `blocks` of rows, or one of ROWS; or one of LOADING,
        without a solver; or one of BY_HAND, without a job.
    row_bytes : int
        Bytes of each row that four ranks put.
    """

    checkout: Path
    changes: Sequence[str] = ()
    special: str = ""
    row_bytes: int = 4


class Side:
    """A process that moves samples when it is its turn; the constructor starts it.

    Between its turns its processes are stopped: when they waited instead, a job took 10 % of the time from hand-written
    code, which took as much as 30 % from a job.
    """

    def __init__(self, way: Way, cell: Cell) -> None:
        self._folder = cell.folder
        cell.write()
        with open(cell.folder / "gate", "r+b") as file:
            self._memory: Any = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._memory).cast("q")
        command, variables = _by_hand(way, cell) if way.special in BY_HAND else _job(way, cell)
        environ = {**_environ(), **variables}
        if way.special in (*LOADING, *BY_HAND):
            environ["OMP_NUM_THREADS"] = "1"
        with open(cell.folder / "log.txt", "wb") as log:
            self._processes: list[psutil.Process] = []  # filled after the first turn
            self._job = subprocess.Popen(
                command, cwd=cell.folder, env=environ,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def turn(self, batches: int, limit_s: float = _TURN_LIMIT_S) -> float:
        """Let the side move a number of batches; return the seconds they took."""
        self._signal(signal.SIGCONT)
        self._words[_COUNT] = batches
        self._words[_TURN] += 1
        deadline = time.monotonic() + limit_s
        while self._words[_DONE] != self._words[_TURN]:
            if self._job.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"{self._folder}: {(self._folder / 'log.txt').read_text(errors='replace')[-800:]}")
            time.sleep(_PAUSE_S)
        if not self._processes:  # all have started by now
            self._processes = psutil.Process(self._job.pid).children(recursive=True)
        self._signal(signal.SIGSTOP)
        return float(memoryview(self._memory).cast("d")[_SECONDS])

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def close(self) -> None:
        """Let the side end, or kill it after a time limit."""
        self._signal(signal.SIGCONT)
        self._words[_STOP] = 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._job.wait(_END_LIMIT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._job.pid, signal.SIGKILL)
        self._job.wait()


def _environ() -> dict[str, str]:
    """Return the environment without PYTHONPATH, so that the other checkout does not import this one's packages."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _by_hand(way: Way, cell: Cell) -> tuple[list[str], Mapping[str, str]]:
    long = dataclasses.replace(cell, seconds=_LONGEST_S)
    if way.special == "sampled":
        return [str(built("sampled")), str(cell.folder), str(cell.sample_bytes), str(cell.queue)], {}
    if ceiling := BY_HAND[way.special]:
        numbers = [str(cell.sample_bytes), "0", "0"]
        return mpirun(2, [str(built("ceiling")), str(cell.folder), *numbers, "isend", "probe", *ceiling], long)
    parts = [str(_parts())] if way.special == "rows sent" else []
    program = [str(_PROGRAMS / "turns_by_hand.py"), str(cell.folder), way.special, str(cell.sample_bytes), *parts]
    return mpirun(2, [sys.executable, *program], long)


def _job(way: Way, cell: Cell) -> tuple[list[str], Mapping[str, str]]:
    tools = way.checkout / ".venv" / "bin"
    text = _loading(way.special, cell) if way.special in LOADING else _streaming(tools, way, cell)
    (cell.folder / "job.yaml").write_text(text)
    return [str(tools / "mpidata"), "run", "job.yaml", *(word for one in way.changes for word in ("--set", one))], {}


def _parts() -> Path:
    rows.write_parts(rows.STORE, rows.ROWS)
    return rows.STORE


def _loading(kind: str, cell: Cell) -> str:
    """Return a job file in which a loader sends batches of as many bytes as a sample of the other jobs."""
    parts = f", {str(_parts())!r}" if kind == "rows" else ""
    words = f"{str(_PROGRAMS / 'turns_loading.py')!r}, {str(cell.folder)!r}, {kind}, '{cell.sample_bytes}'{parts}"
    program = f"[python, {words}]"
    return f"trainers: {{ranks: 1, program: {program}}}\nloaders: {{ranks: 1}}\n"


def _streaming(tools: Path, way: Way, cell: Cell) -> str:
    """Return a job file of a stream; the solver is compiled for the checkout."""
    special = way.special
    by_rows = special in ("blocks", *ROWS)
    solver = _compile(tools, "turns_rows.c" if by_rows else "turns.c", cell.folder / "turns", special == "carried")
    several = special in ("constants", "simulations")
    keys = {"carried": "carried: {ranks: 1, launcher: none}, ", "halves": "ranks_per_group: 2, "}.get(special, "")
    more = f", {special}" if several or special in ("varying", "lent", "arrays") else ""
    shape = "n" if special == "varying" else str(cell.elements)
    mesh = f"mesh: {{dtype: float32, shape: [{CONSTANT // 4}], per: simulation}}, " if special == "constants" else ""
    if by_rows:
        keys, more = "ranks_per_group: 4, ", f', {special}, "{way.row_bytes}"'
        shape = f"{cell.sample_bytes // way.row_bytes}, {way.row_bytes // 4}"
    counting = ", fresh" if special == "fresh" else ""
    return f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAMS / "turns.py")!r}, {str(cell.folder)!r}{counting}]}}
solvers: {{groups: 1, {keys}program: [{str(solver)!r}, {str(cell.folder)!r}, "{cell.elements}"{more}]}}
parameters: {{count: {100_000 if several else 1}, space: {{alpha: [0, 1]}}}}
fields: {{{mesh}u: {{dtype: float32, shape: [{shape}]}}}}
buffer: {{policy: fifo, capacity: {cell.queue}}}
"""


def _compile(tools: Path, source: str, program: Path, carried: bool) -> Path:
    words = ["--carried"] if carried else ["--cflags", "--libs"]
    libraries = shlex.split(subprocess.check_output([tools / "mpidata", "config", *words], text=True, env=_environ()))
    compiler = ["cc", "-DCARRIED"] if carried else [str(tools / "mpicc")]
    subprocess.run([*compiler, "-O2", str(_PROGRAMS / source), "-o", str(program), *libraries], check=True)
    return program
