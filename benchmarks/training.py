"""Training: the step time of a small and a medium model, with data in memory, from the stream and from files."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import BATCH, ROOT, BenchmarkError, Cell, run_processes
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.run.plan import Field

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "training"
ABOUT = "the step of two models, with data in memory, from the stream and from files"
MODELS = ["small", "medium"]
SOURCES = ["memory", "stream, fifo", "stream, reservoir", "stream, recorded", "files"]
_SAMPLE_BYTES = 64 << 10
_QUEUE = 128
_RECORDED = 16_384
_STORE = ROOT / "build" / "benchmarks" / "record"
_PROGRAM = ROOT / "benchmarks" / "programs" / "training.py"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    try:
        built("solver")
        _write_record()
    except (BenchmarkError, OSError) as error:
        return [f"{NAME}: {error}"]
    cases = [
        Case(f"{model}, {source}", partial(measure, model, source, settings.seconds))
        for model in MODELS
        for source in SOURCES
    ]
    return run_rounds(NAME, cases, settings, render)


def measure(model: str, source: str, seconds: float) -> dict[str, float]:
    """Train for `seconds`."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell(Path(folder), _SAMPLE_BYTES, seconds, 0, _QUEUE)
        cell.write()
        kind, _, policy = source.partition(", ")
        arguments = [folder, kind, model, str(_STORE)]
        if kind == "stream":
            (cell.folder / "job.yaml").write_text(_job(cell, policy, arguments))
            mpidata = str(Path(sys.executable).parent / "mpidata")
            command = ["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]
        else:
            _forget()
            command = ["timeout", "-k", "5", f"{cell.limit_s:.0f}", sys.executable, str(_PROGRAM), *arguments]
        result = run_processes([command], cell, {"OMP_NUM_THREADS": "1"})
        own_mb = json.loads((cell.folder / "memory.json").read_text())["own_mb"]
    steps = result.samples / BATCH
    if not steps:
        raise BenchmarkError("The data were used up before the clock began.")
    return {"step_ms": 1e3 * result.seconds / steps, "per_second": result.samples / result.seconds, "own_mb": own_mb}


def _job(cell: Cell, policy: str, arguments: list[str]) -> str:
    watermark = f", watermark: {BATCH}" if policy == "reservoir" else ""
    record = "record: {path: record, when_slow: skip}" if policy == "recorded" else ""
    policy = policy.replace("recorded", "fifo")
    program = ", ".join(repr(argument) for argument in [str(_PROGRAM), *arguments])
    return f"""\
trainers: {{ranks: 1, program: [python, {program}]}}
solvers: {{program: [{str(built("solver"))!r}, {str(cell.folder)!r}, "{cell.elements}", "0", put]}}
parameters: {{count: 1, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: [{cell.elements}]}}}}
buffer: {{policy: {policy}, capacity: {cell.queue}{watermark}}}
{record}
"""


def _write_record() -> None:
    """Make the files to read if they do not exist."""
    whole = _STORE / f"{_RECORDED}.whole"
    if whole.exists():
        return
    shutil.rmtree(_STORE, ignore_errors=True)
    if shutil.disk_usage(ROOT).free < 4 * _RECORDED * _SAMPLE_BYTES:
        raise BenchmarkError("The disk has too little room.")
    _STORE.mkdir(parents=True)
    elements, block = _SAMPLE_BYTES // 4, 64
    header = Header("benchmark", 0, 1, ("alpha",), (Field("u", "float32", (elements,)),))
    file = RecordFile(_STORE / "trainer-0000.h5", header)
    values = np.random.default_rng(0).random((block, elements), np.float32)

    def write(descriptor: int, field: int, first: int, count: int, offset: int) -> None:
        part = values[first : first + count].data.cast("B")
        if os.pwrite(descriptor, part, offset) != len(part):
            raise OSError("the disk is full")

    for first in range(0, _RECORDED, block):
        step = np.arange(first, first + block)
        zeros = np.zeros(block)
        rows = Rows(zeros.astype(np.int64), step, 0.01 * step, zeros.astype(np.uint8), zeros[:, None])
        file.append(rows, write)
    file.sync()
    file.close()
    whole.touch()


def _forget() -> None:
    """Drop the files from the page cache."""
    for path in _STORE.glob("*.h5"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    steps = {s: [results.spread(f"{m}, {s}", "step_ms") for m in MODELS] for s in SOURCES}
    ratios = {s: [results.ratio(f"{m}, {s}", f"{m}, memory", "step_ms") for m in MODELS] for s in SOURCES[1:]}
    more = {s: [results.difference(f"{m}, {s}", f"{m}, memory", "own_mb") for m in MODELS] for s in SOURCES[1:]}
    rates = {s: [results.spread(f"{m}, {s}", "per_second", 1e-3) for m in MODELS] for s in SOURCES}
    online = {s: [results.ratio(f"{m}, {s}", f"{m}, files", "per_second") for m in MODELS] for s in SOURCES[1:4]}
    parts = [
        f"Samples of {_SAMPLE_BYTES >> 10} KB in batches of {BATCH}; one thread computes.",
        "## A step, ms",
        grid("", MODELS, steps),
        "## Ratio to data in memory",
        grid("step", MODELS, ratios),
        "## Additional memory of the training process, without data and buffers, compared with data in memory, MB",
        grid("", MODELS, more),
        "## Thousands of samples used per second",
        grid("", MODELS, rates),
        "## Ratio to offline training from files",
        grid("samples a second", MODELS, online),
    ]
    title = "Training: in memory, from the stream, from files"
    (output / f"{NAME}.md").write_text(page(NAME, title, contents, parts), encoding="utf-8")
    bars = {source: list(zip(range(1, 3), steps[source], strict=True)) for source in SOURCES}
    curves(output / f"{NAME}.png", [Plot(bars, "model: 1 small, 2 medium", "ms of a step", log="y")])
