"""The front page of the benchmarks, and the figures of the project's pages that come from it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import front, stream
from benchmarks.__main__ import main
from benchmarks.contender import ROOT

KB = 1 << 10
RATES = {"mpidata fifo": 100e3, "mpidata iput": 90e3, "MPI gather": 80e3, "MPI gather, huge": 140e3, "MPI hold": 200e3}
PEERS = {"pyzmq: ipc": 20e3, "pyzmq: tcp": 30e3, "Redis": 5e3, "memcpy": 1e6}
ROWS = {
    **{row: [row] for row in ("mpidata fifo", "mpidata iput", "Redis", "memcpy")},
    "MPI, gathered": ["MPI gather"],
    "MPI, gathered, huge pages": ["MPI gather, huge"],
    "MPI, not gathered": ["MPI hold"],
    "pyzmq": ["pyzmq: ipc", "pyzmq: tcp"],
}


def contents(rates: dict[str, float], **more: str) -> dict[str, Any]:
    measurements = [
        {"contender": name, "sample_bytes": size, "round": 0, "samples": int(rate), "seconds": 1.0}
        for name, rate in rates.items()
        for size in (64 * KB, 8 * KB)
    ]
    told = {"settings": "1 round.", "without": [], "about": {}, "rows": ROWS, "machine": {"cores": "2, EPYC"}}
    return {**told, "measurements": measurements, **more}


def write(folder: Path, name: str, values: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(values))
    assert main(["--render", "--only", "front", "--output", str(folder)]) == 0


def test_the_page_has_hand_written_mpi_and_the_best_peer(tmp_path: Path) -> None:
    write(tmp_path, "stream", contents(RATES | PEERS | {"Redis": 40e3}))
    text = (tmp_path / "front.md").read_text()
    assert "| | 8 KB | 64 KB |" in text and "| mpidata fifo | 819 | 6554 |" in text
    assert "| MPI, gathered | 1147 | 9175 |" in text  # in huge pages, which are faster
    assert "| best peer | Redis: 328 | Redis: 2621 |" in text and "memcpy" not in text
    assert "with 2 cores, mpidata moves 6.6 GB/s of 64 KB samples" in text
    assert "batches moves 9.2 GB/s, and the fastest other transport measured (Redis) 2.6 GB/s." in text
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_peers_come_from_the_last_complete_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "draw", lambda *_: None)
    write(tmp_path, "stream", contents(RATES | PEERS, begun="2026-01-01", settings="5 rounds."))
    write(tmp_path, "front", contents({name: 2 * rate for name, rate in RATES.items()}, begun="2026-02-01"))
    text = (tmp_path / "front.md").read_text()
    assert "| mpidata fifo | 1638 | 13107 |" in text and "| best peer | pyzmq: 246 | pyzmq: 1966 |" in text
    assert "The peers were measured in another run: 5 rounds." in text
    write(tmp_path, "stream", contents(RATES | PEERS, begun="2026-03-01"))
    text = (tmp_path / "front.md").read_text()
    assert "| mpidata fifo | 819 | 6554 |" in text and "another run" not in text


def test_page_states_if_no_peer_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "draw", lambda *_: None)
    write(tmp_path, "front", contents(RATES))
    text = (tmp_path / "front.md").read_text()
    assert "| best peer | – | – |" in text and "No peer was measured" in text and "GB/s" not in text


def test_figures_are_written_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- front: made by python -m benchmarks --render -->\nold\n<!-- front ends -->\nb\n")
    front.write_between(page, ["new", "\\1"])
    assert page.read_text().splitlines()[2:5] == ["", "new", ""] and page.read_text().endswith("ends -->\nb\n")
    front.write_between(page, ["newer"])
    assert "new\n" not in page.read_text() and "newer\n" in page.read_text()
    page.write_text("a\n")
    with pytest.raises(ValueError, match="has no part between"):
        front.write_between(page, ["new"])


def test_pages_and_readme_have_the_figures_of_the_results() -> None:
    """`python -m benchmarks --render` writes them there."""
    results = front.results(front.RESULTS)
    assert results is not None and results.page() == (front.RESULTS / "front.md").read_text()
    head = (ROOT / "docs" / "benchmarks.md").read_text().split("\n## ")[0]
    assert results.table() in head and "](../benchmarks/results/front.png)" in head
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert results.sentence() in readme
    assert re.findall(r"[\d.]+ GB/s", readme) == re.findall(r"[\d.]+ GB/s", results.sentence())


def test_the_sizes_of_the_page_are_those_of_the_stream() -> None:
    results = front.results(front.RESULTS)
    assert results is not None and results.figures.sizes == stream.SIZES
