"""How throughput, CPU time per row and the loaders' memory change with the number of loaders and trainers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.loading import run_way
from benchmarks.rows import COLUMNS, PARTS, ROWS, STORE, write_parts

__all__ = ["ABOUT", "NAME", "measure", "render", "run"]

NAME = "loaders"
ABOUT = "throughput, CPU time of a row and memory as loaders and trainers grow"
# (loaders, trainers)
SIZES = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 4), (8, 4)]
_BATCH, _EPOCHS = 8192, 5  # rows of all trainers; the first epoch is not measured
_QUANTITIES = {
    "million rows/s": ("rows_per_s", 1e-6),
    "CPU of a row on all ranks, ns": ("cpu_ns", 1.0),
    "memory of the loaders, MB": ("loaders_mb", 1.0),
}


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    write_parts(STORE, ROWS)
    cases = [Case(_name(*size), partial(measure, *size)) for size in SIZES]
    return run_rounds(NAME, cases, settings, render)


def _name(loaders: int, trainers: int) -> str:
    return f"{loaders} to {trainers}"


def measure(loaders: int, trainers: int, store: Path = STORE) -> dict[str, float]:
    """Run one job."""
    arguments = [str(store), str(_BATCH // trainers), str(_EPOCHS)]
    return run_way("loaders", "job", "mpidata", arguments, loaders, trainers)


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    names = [_name(*size) for size in SIZES]
    rows = {name: [results.spread(name, quantity, by) for quantity, by in _QUANTITIES.values()] for name in names}
    ratios = {name: [results.ratio(name, names[0], "cpu_ns")] for name in names[1:]}
    data_mb = COLUMNS * 4 * PARTS * ROWS / 1e6
    parts = [
        f"`FileDataset` reads {PARTS * ROWS / 1e6:g} million rows of {COLUMNS} float32 values ({data_mb:.0f} MB) in "
        f"{PARTS} npy parts. The batches of all trainers together have {_BATCH} rows. The first epoch is not measured. "
        "The loops read every value.",
        grid("loaders to trainers", list(_QUANTITIES), rows),
        grid("loaders to trainers", ["CPU of a row, to 1 loader and 1 trainer"], ratios),
        "With more ranks than cores, throughput cannot grow.",
    ]
    title = "Growth: loaders and trainers"
    (output / f"{NAME}.md").write_text(page(NAME, title, contents, parts), encoding="utf-8")
    lines = {
        f"{trainers} trainers": [(n, results.spread(_name(n, t), "cpu_ns")) for n, t in SIZES if t == trainers]
        for trainers in (1, 2, 4)
    }
    curves(output / f"{NAME}.png", [Plot(lines, "loaders", "ns of CPU for a row", log="x")])
