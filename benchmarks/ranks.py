"""How start, end, opened files and memory of a job grow with its solver ranks, compared with ranks of MPI alone."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil

from benchmarks.build import PLACEMENT, built
from benchmarks.cases import Case, Plot, Results, Settings, curves, exponent, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell
from benchmarks.figures import Spread
from benchmarks.gate import Gate
from benchmarks.rounds import sources
from benchmarks.waiting_ranks import cell_folder, log_of, running, wait_for
from mpidata.launch.starting.command import mpirun_environment
from mpidata.launch.starting.mpirun import find_mpirun

__all__ = ["ABOUT", "KINDS", "NAME", "RANKS", "Mpi", "measure", "mpis", "opened", "render", "run"]

NAME = "ranks"
ABOUT = "start, end, files and memory of a job with 2 to 128 solver ranks, with two MPIs"
RANKS = [2, 4, 8, 16, 32, 64, 128]
KINDS = ["job", "bare"]
MPICH = "MPICH"
_LIMIT_S = 180.0  # until the last first dispatch, and from then to the end
_BOUNDED = ["timeout", "-k", "5", f"{2 * _LIMIT_S:.0f}"]  # in case the benchmark itself is killed
_OWN = Path(sys.executable).parent
_QUANTITIES = {
    "first dispatch, s": ("first_s", 1.0),
    "end, s": ("end_s", 1.0),
    "thousand files opened": ("files", 1e-3),
    "memory of a rank, MB": ("rank_mb", 1.0),
}


@dataclasses.dataclass(frozen=True)
class Mpi:
    """An MPI, and the program folder of an environment whose mpidata was built for it."""

    name: str
    tools: Path
    mpirun: tuple[str, ...]

    def environ(self) -> dict[str, str]:
        """Return the variables of the activated environment."""
        variables = mpirun_environment(os.geteuid() == 0, environ=os.environ)
        path = os.pathsep.join([str(self.tools), os.environ.get("PATH", os.defpath)])
        # Without PYTHONPATH, the environment imports its own mpidata instead of this folder's.
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables | {"PATH": path}


def _mpich() -> Mpi:
    """Build the current mpidata for Debian's MPICH; raise BenchmarkError on failure."""
    mpirun = shutil.which("mpirun.mpich")
    if mpirun is None or shutil.which("mpicc.mpich") is None:
        raise BenchmarkError("no mpirun.mpich and mpicc.mpich; `make test-packages` installs them")
    folder = ROOT / "build" / "benchmarks" / "debian-mpich"
    made = folder / "made"
    if not made.exists() or made.read_text() != sources():
        command = ["sh", "tools/make-mpi.sh", "debian-mpich", str(folder), sys.executable]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchmarkError(f"no environment with it: {done.stderr.strip()[-800:]}")
        made.write_text(sources())
    return Mpi(MPICH, folder / "bin", (mpirun,))


def mpis(missing: list[str]) -> list[Mpi]:
    """Return the available MPIs; append a line to `missing` for each other one."""
    found = [Mpi("Open MPI", _OWN, (str(find_mpirun()), *PLACEMENT))]
    try:
        found.append(_mpich())
    except BenchmarkError as error:
        missing.append(f"{MPICH}: {error}")
    return found


def run(settings: Settings) -> list[str]:
    """Measure once, whatever the rounds, and write the page; return what is missing or failed."""
    missing = [] if shutil.which("strace") else ["files: no strace, which counts them"]
    cases = [
        Case(_name(mpi.name, kind, ranks), partial(measure, mpi, kind, ranks))
        for mpi in mpis(missing)
        for ranks in RANKS
        for kind in KINDS
    ]
    return run_rounds(NAME, cases, dataclasses.replace(settings, rounds=1), render, missing)


def _name(mpi: str, kind: str, ranks: int) -> str:
    return f"{mpi}, {kind}, {ranks} ranks"


def measure(mpi: Mpi, kind: str, ranks: int) -> dict[str, float]:
    """Run the job twice: as it is, and under strace, which counts the files."""
    with cell_folder(_LIMIT_S) as cell:
        command = _job(mpi, cell, ranks) if kind == "job" else _bare(mpi, cell, ranks)
        found = _timed(command, mpi, cell, ranks)
    with cell_folder(_LIMIT_S) as cell:
        command = _job(mpi, cell, ranks) if kind == "job" else _bare(mpi, cell, ranks)
        return {**found, **_files(command, mpi, cell, ranks)}


def _bare(mpi: Mpi, cell: Cell, ranks: int) -> list[str]:
    return [*_BOUNDED, *mpi.mpirun, "-n", str(ranks), str(built("bare", mpi.tools)), str(cell.folder)]


def _job(mpi: Mpi, cell: Cell, ranks: int) -> list[str]:
    """Write a job whose groups have one rank and one simulation each; return its command."""
    trainer = "import mpidata; [None for batch in mpidata.MPIStreamDataset(batch_size=1)]"
    (cell.folder / "job.yaml").write_text(f"""\
trainers: {{ranks: 1, program: [python, -c, {trainer!r}]}}
solvers: {{groups: {ranks}, program: [{str(built("idle", mpi.tools))!r}, {str(cell.folder)!r}]}}
parameters: {{count: {ranks}, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: []}}}}
""")
    return [*_BOUNDED, str(mpi.tools / "mpidata"), "run", "job.yaml"]


def _timed(command: list[str], mpi: Mpi, cell: Cell, ranks: int) -> dict[str, float]:
    """Return the seconds to the first dispatch and to the end, without the time to read the memory while ranks wait."""
    started, gate = time.monotonic(), Gate(cell.folder, _LIMIT_S)
    with running(command, cell.folder, mpi.environ()) as process:
        wait_for(gate, process, 1, cell.folder, _LIMIT_S)
        first = time.monotonic()
        wait_for(gate, process, ranks, cell.folder, _LIMIT_S)
        there = time.monotonic()
        memory = _rank_mb(process.pid, cell.folder, ranks)
        released = time.monotonic()
        _end(gate, process, cell.folder)
        ended = time.monotonic()
    return {"first_s": first - started, "end_s": ended - released + there - started, "rank_mb": memory}


def _end(gate: Gate, process: subprocess.Popen[bytes], folder: Path) -> None:
    gate.stop()
    try:
        status = process.wait(_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"It did not end within {_LIMIT_S:.0f} s: {log_of(folder)}") from None
    if status:
        raise BenchmarkError(f"Exit status {status}: {log_of(folder)}")


def _rank_mb(pid: int, folder: Path, ranks: int) -> float:
    """Return the memory of a solver rank with its `mpidata-rank`; shared memory is divided among processes (PSS)."""
    programs, parents = [], []
    for one in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if one.cmdline()[1:] == [str(folder)]:
                programs.append(one)
    for one in programs:
        with contextlib.suppress(psutil.Error):
            parents += [parent for parent in [one.parent()] if parent and parent.name() == "mpidata-rank"]
    if len(programs) != ranks:
        raise BenchmarkError(f"Found {len(programs)} of {ranks} ranks.")
    return float(sum(one.memory_full_info().pss for one in programs + parents)) / ranks / 1e6


def _files(command: list[str], mpi: Mpi, cell: Cell, ranks: int) -> dict[str, float]:
    """Return how many files all processes open; empty without strace."""
    strace = shutil.which("strace")
    if strace is None:
        return {}
    table = cell.folder / "opened"
    options = ["-f", "--seccomp-bpf", "-qq", "-c", "-U", "calls,errors,name", "-e", "trace=open,openat,openat2,creat"]
    gate = Gate(cell.folder, _LIMIT_S)
    with running([strace, *options, "-o", str(table), *command], cell.folder, mpi.environ()) as process:
        wait_for(gate, process, ranks, cell.folder, _LIMIT_S)
        _end(gate, process, cell.folder)
    return {"files": float(opened(table.read_text()))}


def opened(table: str) -> int:
    """Return the number of successful calls in strace's table."""
    words = next(line.split() for line in table.splitlines() if line.split()[-1:] == ["total"])
    return int(words[0]) - (int(words[1]) if len(words) > 2 else 0)


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    names = dict.fromkeys(case.partition(", ")[0] for case in results.cases)
    parts = [
        "A job has this number of groups of one rank, a trainer and a scheduler. Bare ranks only call MPI_Init, a "
        "barrier and MPI_Finalize. Each rank holds its first simulation until all have one. The end does not include "
        "the time in which memory is read. Memory is that of a solver's process and its `mpidata-rank`. Files are "
        "those opened by all processes, counted in a separate run. Each value is measured once."
    ]
    lines: dict[str, dict[str, list[tuple[float, Spread | None]]]] = {
        quantity: {} for quantity, _ in _QUANTITIES.values()
    }
    for mpi in names:
        rows = {}
        for title, (quantity, factor) in _QUANTITIES.items():
            for kind in KINDS:
                spreads = [results.spread(_name(mpi, kind, n), quantity, factor) for n in RANKS]
                rows[f"{kind}: {title}"] = [*spreads, _exponent(results, mpi, kind, quantity)]
                lines[quantity][f"{mpi}, {kind}"] = list(zip(RANKS, spreads, strict=True))
        parts += [f"## {mpi}", grid("solver ranks", [*map(str, RANKS), "exponent"], rows)]
    parts.append("A value is proportional to a power of the number of ranks, with this exponent.")
    title = "Ranks: start, end, files and memory"
    (output / f"{NAME}.md").write_text(page(NAME, title, contents, parts), encoding="utf-8")
    curves(output / f"{NAME}.png", [Plot(lines[q], "solver ranks", title) for title, (q, _) in _QUANTITIES.items()])


def _exponent(results: Results, mpi: str, kind: str, quantity: str) -> str:
    spreads = [(ranks, results.spread(_name(mpi, kind, ranks), quantity)) for ranks in RANKS]
    slope = exponent([(ranks, spread.median) for ranks, spread in spreads if spread])
    return "–" if slope is None else f"{slope:.2f}"
