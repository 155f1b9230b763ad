"""Meshes of varying size: sent as they are, padded, and by other tools."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, peer_python, run_processes
from benchmarks.mesh_sizes import NODE_BYTES, nodes, write_nodes
from benchmarks.table import size_name

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "meshes"
ABOUT = "samples of 0.5 to 1.5 times a mean size"
WAYS = ["mpidata, packed", "mpidata, padded", "ADIOS2 SST", "pyzmq, pickle"]
SIZES = [8 << 10, 64 << 10, 1 << 20]  # mean bytes of a sample
_PROGRAM = ROOT / "benchmarks" / "programs" / "meshes.py"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    cases = [
        Case(_name(way, size), partial(measure, way, size, settings.seconds)) for size in SIZES for way in WAYS
    ]  # fmt: skip
    return run_rounds(NAME, cases, settings, render)


def _name(way: str, size: int) -> str:
    return f"{way}, {size_name(size)}"


def measure(way: str, size: int, seconds: float) -> dict[str, float]:
    """Measure one way for `seconds`; bytes exclude padding."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell.plan(Path(folder), size, seconds)
        cell.write()
        write_nodes(cell.folder, size)
        result = run_processes(_job(way, cell) if way.startswith("mpidata") else _peers(way, cell), cell)
    moved = sum(nodes(size, cell.warm + result.samples)[cell.warm :]) * NODE_BYTES
    return {"bytes_per_s": moved / result.seconds, "samples_per_s": result.samples / result.seconds}


def _job(way: str, cell: Cell) -> list[list[str]]:
    most, kind = max(nodes(cell.sample_bytes)), way.removeprefix("mpidata, ")
    extent = "nodes" if kind == "packed" else most
    more = "" if kind == "packed" else ", count: {dtype: int64, shape: []}"
    (cell.folder / "job.yaml").write_text(f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAM)!r}, {kind}, {str(cell.folder)!r}]}}
solvers: {{groups: 1, program: [{str(built("meshes"))!r}, {str(cell.folder)!r}, "{most}", "{cell.warm}", {kind}]}}
parameters: {{count: 1, space: {{alpha: [0, 1]}}}}
fields: {{xy: {{dtype: float32, shape: [{extent}, 2]}}, u: {{dtype: float32, shape: [{extent}]}}{more}}}
buffer: {{policy: fifo, capacity: {cell.queue}}}
""")
    mpidata = str(Path(sys.executable).parent / "mpidata")
    return [["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]]


def _peers(way: str, cell: Cell) -> list[list[str]]:
    module = {"ADIOS2 SST": "adios_sst_meshes", "pyzmq, pickle": "zeromq_pickle_meshes"}[way]
    try:
        start = [peer_python(), "-m", f"benchmarks.contenders.{module}"]
    except OSError as error:
        raise BenchmarkError(f"no environment for peers ({error})") from None
    return [[*start, role, str(cell.folder), "ipc"] for role in ("produce", "consume")]


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    sizes = [size_name(size) for size in SIZES]
    rates = {way: [results.spread(_name(way, size), "bytes_per_s", 1e-6) for size in SIZES] for way in WAYS}
    ratios = {
        way: [results.ratio(_name(WAYS[0], size), _name(way, size), "bytes_per_s") for size in SIZES]
        for way in WAYS[1:]
    }  # fmt: skip
    parts = [
        "Each node has two coordinates and a value, in float32. A mesh has 0.5 to 1.5 times the mean number of nodes. "
        "Only the bytes of the meshes count, not those of the padding.",
        grid("MB/s, mean size", sizes, rates),
        grid("ratio of mpidata, packed, to", sizes, ratios),
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "Meshes of different sizes", contents, parts), encoding="utf-8")
    lines = {
        way: [(size / 1024, results.spread(_name(way, size), "bytes_per_s", 1e-6)) for size in SIZES] for way in WAYS
    }
    curves(output / f"{NAME}.png", [Plot(lines, "KB of a mesh, mean", "MB/s")])
