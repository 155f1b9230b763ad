"""Shuffled rows of files: FileDataset compared with other tools, with one loader and one trainer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT
from benchmarks.loading import run_way

__all__ = ["ABOUT", "COLUMNS", "NAME", "PARTS", "ROWS", "STORE", "render", "run", "write_parts"]

NAME = "rows"
ABOUT = "shuffled batches of the rows of part files"
# How each way runs, its KIND in programs/rows.py, and the format of the parts.
WAYS = {
    "FileDataset, npy": ("job", "mpidata", "npy"),
    "FileDataset, Parquet": ("job", "mpidata", "parquet"),
    "MPI by hand": ("mpi", "by_hand", "npy"),
    "index_select in memory": ("process", "in_memory", "npy"),
    "torch DataLoader, rows": ("process", "torch_loader", "npy"),
    "torch DataLoader, batches": ("process", "torch_batches", "npy"),
    "Ray Data": ("peer", "ray_data", "parquet"),
}
BY_HAND = "MPI by hand"
_BATCH, _EPOCHS, PARTS, COLUMNS = 8192, 4, 8, 21
ROWS = 250_000  # per part
STORE = ROOT / "build" / "benchmarks" / "rows"
_QUANTITIES = {
    "million rows/s": ("rows_per_s", 1e-6),
    "first batch, s": ("first_s", 1.0),
    "wait, µs": ("wait_us", 1.0),
    "its p99, µs": ("wait_p99_us", 1.0),
    "p99 beside steps that sleep, µs": ("beside_sleep_p99_us", 1.0),
    "idle timer's p99 there, µs": ("idle_timer_p99_us", 1.0),
    "memory, MB": ("memory_mb", 1.0),
}


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    write_parts(STORE, ROWS)
    cases = [Case(name, partial(measure, name)) for name in WAYS]
    return run_rounds(NAME, cases, settings, render)


def measure(name: str, store: Path = STORE) -> dict[str, float]:
    """Measure one way over all epochs."""
    how, kind, form = WAYS[name]
    return run_way("rows", how, kind, [str(store), form, str(_BATCH), str(_EPOCHS)])


def write_parts(store: Path, rows: int) -> None:
    """Make the part files if they do not exist."""
    import pyarrow
    import pyarrow.parquet

    store.mkdir(parents=True, exist_ok=True)
    for number in range(PARTS):
        path = store / f"part-{number}.npy"
        if path.exists():
            continue
        values = np.random.default_rng(number).random((rows + number, COLUMNS), dtype=np.float32)
        table = pyarrow.table({f"c{i}": values[:, i] for i in range(COLUMNS)})
        pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
        np.save(path, values)


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    table = {
        name: [results.spread(name, quantity, factor) for quantity, factor in _QUANTITIES.values()] for name in WAYS
    }
    ratios = {name: [results.ratio(name, BY_HAND, "rows_per_s")] for name in WAYS if name != BY_HAND}
    parts = [
        f"A row has {COLUMNS} float32 values. There are {PARTS} parts of {ROWS:,} rows, and batches of {_BATCH} rows. "
        "Rows/s are those of the second to the fourth epoch. The loop reads every value.",
        grid("way", list(_QUANTITIES), table),
        grid("way", ["rows/s, to MPI by hand"], ratios),
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "Shuffled rows of files", contents, parts), encoding="utf-8")
    bars = {name: [(1.0 + i, results.spread(name, "rows_per_s", 1e-6))] for i, name in enumerate(WAYS)}
    curves(output / f"{NAME}.png", [Plot(bars, "way", "million rows/s", log="y")])
