"""Batches of a map-style dataset: mpidata's DataLoader compared with torch's and RPCDataloader, one worker each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.loading import run_way

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "batches"
ABOUT = "batches of a map-style dataset from one worker"
# How each way runs, and its KIND in programs/batches.py.
WAYS = {
    "mpidata.DataLoader": ("job", "mpidata"),
    "parcels by hand": ("mpi", "by_hand"),
    "torch DataLoader": ("process", "torch"),
    "RPCDataloader": ("peer", "rpc"),
}
# Bytes of a batch, and computing time per sample in ms.
SETTINGS = {"1 MB": (1 << 20, 0.0), "8 MB": (8 << 20, 0.0), "2 ms of work": (1 << 16, 2.0)}
BY_HAND = "parcels by hand"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    cases = [
        Case(_name(way, setting), partial(measure, way, setting, settings.seconds))
        for setting in SETTINGS
        for way in WAYS
    ]
    return run_rounds(NAME, cases, settings, render)


def _name(way: str, setting: str) -> str:
    return f"{way}, {setting}"


def measure(way: str, setting: str, seconds: float) -> dict[str, float]:
    """Measure one way for `seconds`."""
    size, busy_ms = SETTINGS[setting]
    return run_way("batches", *WAYS[way], [str(size), str(busy_ms), str(seconds)])


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    quantities = {
        "GB/s": ("bytes_per_s", 1e-9),
        "batches/s": ("batches_per_s", 1.0),
        "first batch, s": ("first_s", 1.0),
        "wait, µs": ("wait_us", 1.0),
        "its p99, µs": ("wait_p99_us", 1.0),
        "memory, MB": ("memory_mb", 1.0),
    }
    parts = ["A batch has 8 samples. The loop reads every value."]
    for setting in SETTINGS:
        rows = {
            way: [results.spread(_name(way, setting), quantity, factor) for quantity, factor in quantities.values()]
            for way in WAYS
        }
        parts.append(grid(setting, list(quantities), rows))
    ratios = {
        way: [results.ratio(_name("mpidata.DataLoader", setting), _name(way, setting), "batches_per_s")
              for setting in SETTINGS]
        for way in WAYS if way != "mpidata.DataLoader"
    }  # fmt: skip
    parts.append(grid("batches/s of mpidata.DataLoader, to", list(SETTINGS), ratios))
    (output / f"{NAME}.md").write_text(page(NAME, "Batches from one worker", contents, parts), encoding="utf-8")
    sizes = {"1 MB": 1.0, "8 MB": 8.0}
    lines = {
        way: [(x, results.spread(_name(way, setting), "bytes_per_s", 1e-9)) for setting, x in sizes.items()]
        for way in WAYS
    }
    curves(output / f"{NAME}.png", [Plot(lines, "MB of a batch", "GB/s")])
