"""Is the stream as fast as in another checkout? Pairs of jobs that take turns, until the ratio is known well.

    python -m benchmarks.against ../before --sizes 8192 262144 8388608
    python -m benchmarks.against . --sizes 65536 --here samples.statistics=true
    python -m benchmarks.against . --sizes 8192 65536 1048576 --carried
    python -m benchmarks.against . --sizes 65536 1048576 --varying --both buffer.policy=firo --both buffer.watermark=32
    python -m benchmarks.against . --sizes 65536 --constants
    python -m benchmarks.against . --sizes 1024 8388608 --lent
    python -m benchmarks.against . --sizes 1048576 --rows numbered --row-bytes 256
    python -m benchmarks.against ../before --sizes 65536 1048576 --loading batches

The other checkout has an environment of its own, made by `make setup`; it may be this one, to see what a key of the job
file costs, what it costs that the solver is no rank of the job (--carried), or that samples have lengths of their own,
0.5 to 1.5 times the size (--varying), or that simulations, of 100 steps in both jobs, have a constant of 1 MB
(--constants), which counts among what is moved; or that arrays are lent, 8 in turn, and not put (--lent); or that the
rows of four ranks go where maps say, or come out of strided memory (--rows, as in turns_rows.c), and are no contiguous
blocks. With --loading no solver is there: batches of so many bytes come from one loader, by mpidata.DataLoader, or by
FileDataset as shuffled rows. A pair is a job of each checkout; both are
there at the same time, and while one moves a number of samples the other waits, in turn, so that both see the same
machine.
A turn varies by half; a pair's ratio is the geometric mean over its turns, less a tenth at either end. The median of
the pairs' ratios has a 90 % interval by the bootstrap (B. Efron, "Bootstrap methods: another look at the jackknife",
Annals of Statistics 7, 1979); pairs are added until it is narrower than 0.06. Status 1 where the median is below 0.95
or the interval ends below 0.97.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import mmap
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from benchmarks import rows
from benchmarks.contender import BATCH, ROOT, BenchmarkError, Cell

__all__ = ["Estimate", "main"]

NARROW, MEDIAN, UPPER = 0.06, 0.95, 0.97
CONSTANT, STEPS = 1 << 20, 100  # bytes, and steps of a simulation, as in turns.c
ROWS = ("numbered", "dealt", "random", "strided")
LOADING = ("batches", "rows")
_PROGRAMS = ROOT / "benchmarks" / "programs"
_STOP, _LAST_STEP, _TURN, _DONE, _SECONDS, _COUNT = 1, 5, 6, 7, 8, 9  # words of the gate, as in turns.py
_TURN_LIMIT_S, _START_LIMIT_S, _END_LIMIT_S = 60.0, 120.0, 30.0
_PAUSE_S = 1e-3


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Median of the ratios, this checkout's rate to the other's, and its 90 % interval."""

    median: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Estimate:
        """From at least two pairs."""
        interval = scipy.stats.bootstrap(
            (np.asarray(ratios),), np.median, confidence_level=0.9, method="percentile", rng=0
        ).confidence_interval
        return cls(statistics.median(ratios), float(interval.low), float(interval.high), len(ratios))

    @property
    def known(self) -> bool:
        """The interval is narrow enough."""
        return self.high - self.low < NARROW

    @property
    def as_fast(self) -> bool:
        """This checkout is as fast as the other."""
        return self.median >= MEDIAN and self.high >= UPPER

    def __str__(self) -> str:
        """For the table."""
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f}), {self.pairs} pairs"


class Side:
    """A job of a checkout, with changes to its job file, which moves samples when it is its turn."""

    def __init__(self, checkout: Path, changes: Sequence[str], special: str, cell: Cell, row_bytes: int) -> None:
        tools, environ = checkout / ".venv" / "bin", dict(os.environ)
        environ.pop("PYTHONPATH", None)
        if special in LOADING:
            environ["OMP_NUM_THREADS"] = "1"
        self._folder = cell.folder
        cell.write()
        with open(cell.folder / "gate", "r+b") as file:
            self._memory: Any = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._memory).cast("q")
        job = _loading(special, cell) if special in LOADING else _streaming(tools, special, cell, row_bytes)
        (cell.folder / "job.yaml").write_text(job)
        options = [word for change in changes for word in ("--set", change)]
        with open(cell.folder / "log.txt", "wb") as log:
            self._job = subprocess.Popen(
                [str(tools / "mpidata"), "run", "job.yaml", *options], cwd=cell.folder, env=environ,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def turn(self, batches: int, limit_s: float = _TURN_LIMIT_S) -> float:
        """Let it move so many batches; returns the seconds they took."""
        self._words[_COUNT] = batches
        self._words[_TURN] += 1
        deadline = time.monotonic() + limit_s
        while self._words[_DONE] != self._words[_TURN]:
            if self._job.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"{self._folder}: {(self._folder / 'log.txt').read_text(errors='replace')[-800:]}")
            time.sleep(_PAUSE_S)
        return float(memoryview(self._memory).cast("d")[_SECONDS])

    def close(self) -> None:
        """Let the job end, or end it."""
        self._words[_STOP] = 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._job.wait(_END_LIMIT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._job.pid, signal.SIGKILL)
        self._job.wait()


def _loading(kind: str, cell: Cell) -> str:
    """Job file where a loader brings batches, of as many bytes as a sample of the others."""
    parts = ""
    if kind == "rows":
        rows.write_parts(rows.STORE, rows.ROWS)
        parts = f", {str(rows.STORE)!r}"
    words = f"{str(_PROGRAMS / 'turns_loading.py')!r}, {str(cell.folder)!r}, {kind}, '{cell.sample_bytes}'{parts}"
    program = f"[python, {words}]"
    return f"trainers: {{ranks: 1, program: {program}}}\nloaders: {{ranks: 1}}\n"


def _streaming(tools: Path, special: str, cell: Cell, row_bytes: int) -> str:
    """Job file of a stream, whose solver is compiled for the checkout."""
    solver = cell.folder / "turns"
    carried, varying = special == "carried", special == "varying"
    several, constants = special in ("constants", "simulations"), special == "constants"
    words = ["--carried"] if carried else ["--cflags", "--libs"]
    libraries = shlex.split(subprocess.check_output([tools / "mpidata", "config", *words], text=True))
    compiler = ["cc", "-DCARRIED"] if carried else [str(tools / "mpicc")]
    by_rows = special in ("blocks", *ROWS)
    source = _PROGRAMS / ("turns_rows.c" if by_rows else "turns.c")
    subprocess.run([*compiler, "-O2", str(source), "-o", str(solver), *libraries], check=True)
    keys = "carried: {ranks: 1, launcher: none}, " if carried else ""
    more, shape = (
        f", {special}" if several or varying or special == "lent" else "",
        "n" if varying else cell.elements,
    )
    mesh = f"mesh: {{dtype: float32, shape: [{CONSTANT // 4}], per: simulation}}, " if constants else ""
    if by_rows:
        keys, more = "ranks_per_group: 4, ", f', {special}, "{row_bytes}"'
        shape = f"{cell.sample_bytes // row_bytes}, {row_bytes // 4}"
    return f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAMS / "turns.py")!r}, {str(cell.folder)!r}]}}
solvers: {{groups: 1, {keys}program: [{str(solver)!r}, {str(cell.folder)!r}, "{cell.elements}"{more}]}}
parameters: {{count: {100_000 if several else 1}, space: {{alpha: [0, 1]}}}}
fields: {{{mesh}u: {{dtype: float32, shape: [{shape}]}}}}
buffer: {{policy: fifo, capacity: {cell.queue}}}
"""


def pair(
    checkouts: Sequence[tuple[Path, Sequence[str], str]], size: int, turns: int, seconds: float, row_bytes: int = 4
) -> list[float]:
    """Ratios of the first's rate to the second's, one for each turn; raises BenchmarkError.

    Each is a checkout, the changes to its job file, and what is special: a `carried` solver, `varying` samples, `lent`
    arrays, short `simulations`, or such ones with `constants`, rows of `row_bytes` from four ranks: `blocks`, or one
    of `ROWS`, or one of `LOADING`, without a solver.
    """
    with tempfile.TemporaryDirectory(prefix="against-") as folder, contextlib.ExitStack() as stack:
        sides = []
        for number, (checkout, changes, special) in enumerate(checkouts):
            own = Path(folder) / str(number)
            own.mkdir()
            cell = Cell.plan(own, size, seconds)
            sides.append(Side(checkout, changes, special, cell, row_bytes))
            stack.callback(sides[-1].close)
        for side in sides:
            side.turn(cell.warm // BATCH, _START_LIMIT_S)  # fills caches and pools
        batches = 4
        while (needed := max(side.turn(batches) for side in sides)) < 0.7 * seconds:
            batches = math.ceil(batches * min(8.0, seconds / needed))
        ratios = []
        for number in range(turns):
            order = [0, 1] if number % 2 else [1, 0]
            took = {one: sides[one].turn(batches) for one in order}
            ratios.append(took[1] / took[0])
        return ratios


def main(arguments: list[str] | None = None) -> int:
    """Measure, and say how the two compare at each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=sys.modules[__name__].__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8 << 10, 256 << 10, 8 << 20], help="bytes of a sample")
    parser.add_argument("--turns", type=int, default=30, help="of each job of a pair")
    parser.add_argument("--seconds", type=float, default=0.15, help="of a turn, about")
    parser.add_argument("--pairs", type=int, default=20, help="at least")
    parser.add_argument("--most", type=int, default=80, help="pairs, at most")
    parser.add_argument("--here", action="append", default=[], metavar="KEY=VALUE", help="change this job file")
    parser.add_argument("--both", action="append", default=[], metavar="KEY=VALUE", help="change both job files")
    parser.add_argument("--carried", action="store_true", help="this solver is no rank of the job")
    parser.add_argument("--varying", action="store_true", help="these samples have lengths of their own")
    parser.add_argument("--constants", action="store_true", help="these simulations have a constant of 1 MB")
    parser.add_argument("--lent", action="store_true", help="this solver lends 8 arrays in turn, and puts none")
    parser.add_argument("--rows", choices=ROWS, default="", help="how these rows lie, beside contiguous blocks")
    parser.add_argument("--row-bytes", type=int, default=4, help="of a row")
    parser.add_argument(
        "--loading", choices=LOADING, default="", help="no stream: batches of these bytes from a loader"
    )
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by SIGTERM."))  # and the jobs with it
    special = next((name for name in ("carried", "varying", "constants", "lent") if getattr(given, name)), given.rows)
    special = special or given.loading
    plain = given.loading or ("simulations" if given.constants else "blocks" if given.rows else "")
    checkouts = [(ROOT, given.both + given.here, special), (given.other.resolve(), given.both, plain)]
    ratios: dict[int, list[float]] = {size: [] for size in given.sizes}
    for number in range(given.most):
        for size in given.sizes:
            if number >= given.pairs and Estimate.of(ratios[size]).known:
                continue
            # Each is started first in every other pair.
            swapped = number % 2 == 1
            found = pair(checkouts[::-1] if swapped else checkouts, size, given.turns, given.seconds, given.row_bytes)
            ratio = float(np.exp(scipy.stats.trim_mean(np.log(found), 0.1)))
            counted = 1 + CONSTANT / (STEPS * size) if given.constants else 1.0
            ratios[size].append(counted * (1 / ratio if swapped else ratio))
            spread = f"{min(found):.2f} to {max(found):.2f}"
            print(f"{number + 1:3d}  {size:8d} bytes  {ratios[size][-1]:.3f}  (turns {spread})", flush=True)
    estimates = {size: Estimate.of(found) for size, found in ratios.items()}
    for size, estimate in estimates.items():
        words = "as fast" if estimate.as_fast else "slower"
        print(f"{size} bytes: {estimate}{'' if estimate.known else ', still wide'}: {words}", flush=True)
    return 0 if all(estimate.known and estimate.as_fast for estimate in estimates.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
