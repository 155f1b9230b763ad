"""The pages that the benchmarks write."""

import json
from pathlib import Path
from typing import Any

from benchmarks.__main__ import main
from benchmarks.roster import benchmarks


def page_of(module: Any, output: Path, values: dict[str, dict[str, list[float]]]) -> str:
    contents = {"machine": {"cores": "2"}, "settings": "2 rounds.", "without": [], "values": values}
    (output / f"{module.NAME}.json").write_text(json.dumps(contents))
    assert main(["--render", "--output", str(output), "--only", module.NAME]) == 0
    assert (output / f"{module.NAME}.png").read_bytes().startswith(b"\x89PNG")
    return (output / f"{module.NAME}.md").read_text()


def test_pages_show_the_measured_values(tmp_path: Path) -> None:
    first, last = benchmarks()[:7], benchmarks()[7:]
    scheduler, dispatch, failure, meshes, producers, publishing, inference = first
    batches, rows, loaders, edges, training, growth, ranks = last
    cost = {f"{n} groups": {"cpu_us": [10.0 * n**0.5] * 2, "per_second": [5e4, 7e4]} for n in (1, 10, 100)}
    text = page_of(scheduler, tmp_path, cost)
    assert "| thousand dispatches a second | 60.0 (50.0–70.0) |" in text and "grows as groups^0.50" in text
    text = page_of(dispatch, tmp_path, {f"{n} ranks": {"wait_us": [20.0 * n, 40.0 * n]} for n in (1, 8)})
    assert "| wait of a rank for its next simulation, µs | 30.0 (20.0–40.0) | – | – | 240 (160–320) |" in text
    text = page_of(failure, tmp_path, {"spare, 1 rank": {"to_sample": [0.1, 0.2]}})
    assert "| until its first new sample is in the training loop | 0.15 (0.10–0.20) | – | – | – |" in text
    steps = {"small, memory": {"step_ms": [2.0, 4.0]}, "small, stream, fifo": {"step_ms": [2.2, 4.0]}}
    text = page_of(training, tmp_path, steps)
    assert "| stream, fifo | 1.05 (1.00–1.10) | – |" in text
    text = page_of(growth, tmp_path, {f"{n} fields": {"cpu_us": [20.0, 20.0]} for n in (1, 2, 4)})
    assert "| CPU of a sample on all ranks, µs | 20.0 | 20.0 | 20.0 | – | – | 0.00 |" in text
    rates = {"mpidata, packed, 64 KB": [3e9, 4e9], "ADIOS2 SST, 64 KB": [3e8, 2e8]}
    text = page_of(meshes, tmp_path, {name: {"bytes_per_s": told} for name, told in rates.items()})
    assert "| ADIOS2 SST | – | 250 (200–300) | – |" in text and "| ADIOS2 SST | – | 15.0 (10.0–20.0) | – |" in text
    values = {"mpidata, 2 of 1 MB": {"samples_per_s": [90.0] * 2, "held": [0.1, 0.02]}}
    values |= {"Redis, 2 of 1 MB": {"samples_per_s": [45.0, 30.0], "held": [0.5, 0.7]}}
    values |= {"mpidata, 8 of 1 MB": {"samples_per_s": [400.0], "held": [0.0]}}
    text = page_of(producers, tmp_path, values)
    assert "| 1 MB, *made* | 100 | 200 | 400 | 800 |" in text and "| 1 MB, mpidata | 6.00 (2.00–10.0) |" in text
    assert "| Redis, 1 MB | 2.50 (2.00–3.00) | – | – | – |" in text
    assert "what is made: met (1 of 1 cases)." in text and "not measured, or no such case" in text
    assert "- mpidata: at most 5 % of the time in puts, if at most half" in text and "missed (0 of 1 cases)" in text
    values = {"100 MB": {"publish_ms": [20.0, 22.0], "ratio": [1.0, 1.1]}}
    values |= {"published every 10 s": {"ratio": [0.99, 1.0], "low": [0.98, 0.99]}}
    text = page_of(publishing, tmp_path, values)
    assert "| publish to memcpy | – | – | 1.05 (1.00–1.10) |" in text
    values = {"mpidata": {"median_us": [30.0, 40.0]}, "by hand": {"median_us": [20.0]}}
    values["batch: 16, wait_ms: 5"] = {"full": [0.9]}
    answers = page_of(inference, tmp_path, values)
    assert "| median, µs | 35.0 (30.0–40.0) | 20.0 |" in answers
    assert "| share of calls with full batches | – | – | 0.90 | – |" in answers
    assert "| steps/s to those without | 0.99 (0.99–1.00) |" in text
    moved = {"torch DataLoader, 8 MB": [1e9, 2e9], "mpidata.DataLoader, 8 MB": [4e9, 8e9]}
    values = {name: {"bytes_per_s": told, "batches_per_s": told} for name, told in moved.items()}
    text = page_of(batches, tmp_path, values)
    assert "| torch DataLoader | – | 4.00 | – |" in text and "| mpidata.DataLoader | 6.00 (4.00–8.00) |" in text
    values = {"FileDataset, npy": {"rows_per_s": [2e7] * 2}, "MPI by hand": {"rows_per_s": [4e7, 2e7]}}
    text = page_of(rows, tmp_path, values)
    assert "| FileDataset, npy | 0.75 (0.50–1.00) |" in text and "| MPI by hand | 30.0 (20.0–40.0) | – |" in text
    values = {"1 to 1": {"cpu_ns": [50.0, 100.0]}, "8 to 4": {"cpu_ns": [60.0, 100.0], "loaders_mb": [2000.0] * 2}}
    text = page_of(loaders, tmp_path, values)
    assert "| 8 to 4 | – | 80.0 (60.0–100) | 2000 |" in text and "| 8 to 4 | 1.10 (1.00–1.20) |" in text
    values = {"lent, 1 KB": {"value": [1.1, 1.2]}, "idle": {"value": [0.2, 0.3]}, "loaders": {"value": [1.2, 1.3]}}
    text = page_of(edges, tmp_path, values)
    assert "| `iput` to `put` | 1 KB | 1.15 (1.1 to 1.2) | 1 | met |" in text and "| 8 MB | – | 1.1 | – |" in text
    assert "share of a core |  | 0.25 (0.2 to 0.3) | 0.1 | missed |" in text and "| 1.3 | met |" in text
    sizes = (2, 8, 128)
    jobs = {f"Open MPI, job, {n} ranks": {"first_s": [1.5 * n**0.5], "rank_mb": [8.0]} for n in sizes}
    bare = {f"Open MPI, bare, {n} ranks": {"first_s": [0.5 * n], "files": [1e3 * n]} for n in sizes}
    text = page_of(ranks, tmp_path, {**jobs, **bare})
    assert "| job: first dispatch, s | 2.12 | – | 4.24 | – | – | – | 17.0 | 0.50 |" in text
    assert "| bare: first dispatch, s | 1.00 | – | 4.00 | – | – | – | 64.0 | 1.00 |" in text
    assert "| job: memory of a rank, MB | 8.00 | – | 8.00 | – | – | – | 8.00 | 0.00 |" in text
    assert "| bare: thousand files opened | 2.00 | – | 8.00 | – | – | – | 128 | 1.00 |" in text
    assert "## MPICH" not in text
