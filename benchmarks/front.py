"""The front page of the benchmarks: mpidata compared with hand-written MPI and with the best peer."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contender import ROOT
from benchmarks.figures import Figures, Measurement
from benchmarks.plot import draw
from benchmarks.table import cell, size_name, table

__all__ = ["NAME", "ROWS", "Front", "render", "results", "write_between"]

NAME = "front"
RESULTS = ROOT / "benchmarks" / "results"
# Each with rows of the stream benchmark. mpidata keeps its memory in huge pages, so hand-written MPI may also use them.
ROWS = {
    "mpidata fifo": ["mpidata fifo"],
    "mpidata iput": ["mpidata iput"],
    "MPI, gathered": ["MPI, gathered", "MPI, gathered, huge pages"],
    "MPI, not gathered": ["MPI, not gathered", "MPI, not gathered, huge pages"],
}
PEER = "best peer"
_NO_PEERS = ("mpidata", "MPI", "memcpy")
_QUOTED = 64 << 10


class Front:
    """The contents of the front page.

    Parameters
    ----------
    own : mapping
        Contents of front.json or stream.json, whichever is newer: mpidata and hand-written MPI.
    all_ : mapping
        Contents of stream.json, for the peers. May be empty.
    """

    def __init__(self, own: Mapping[str, Any], all_: Mapping[str, Any]) -> None:
        self._own, self._all = own, all_
        self._peer_of = {
            name: row
            for row, names in all_.get("rows", {}).items()
            if not row.startswith(_NO_PEERS)
            for name in names
        }  # fmt: skip
        rows = {row: [name for part in parts for name in own["rows"].get(part, [])] for row, parts in ROWS.items()}
        measurements = [Measurement(**one) for one in own["measurements"]]
        peers = [Measurement(**one) for one in all_.get("measurements", []) if one["contender"] in self._peer_of]
        mine = {name for names in rows.values() for name in names}
        measured = [one for one in measurements if one.contender in mine] + peers
        self.figures = Figures(measured, {**rows, PEER: list(self._peer_of)})

    def _cell(self, row: str, size: int) -> str:
        rate = self.figures.rate(row, size)
        text = cell(rate.scaled(size / 1e6) if rate else None)
        best = self.figures.best(row, size) if row == PEER else None
        return f"{self._peer_of[best]}: {text}" if best else text

    def table(self) -> str:
        """Return the table of MB/s by bytes of a sample."""
        return table(self.figures, self._cell)

    def sentence(self) -> str:
        """Return a sentence on the speed at one size, for the README; empty if a row lacks that size."""
        rates = {row: self.figures.rate(row, _QUOTED) for row in self.figures.rows}
        gb = {row: f"{rate.median * _QUOTED / 1e9:.1f}" for row, rate in rates.items() if rate}
        if len(gb) < len(rates):
            return ""
        best = self._peer_of[str(self.figures.best(PEER, _QUOTED))]
        cores = self._own["machine"]["cores"].partition(",")[0]
        return (
            f"From the solver's call to a batch in the training loop, on one machine with {cores} cores, mpidata moves "
            f"{gb['mpidata fifo']} GB/s of {size_name(_QUOTED)} samples in order of arrival. Hand-written MPI that "
            f"copies them into batches moves {gb['MPI, gathered']} GB/s, and the fastest other transport measured "
            f"({best}) {gb[PEER]} GB/s."
        )

    def page(self) -> str:
        """Return the whole page in Markdown."""
        parts = [
            "# Front page: mpidata, hand-written MPI and the best peer",
            f"{self._own['settings']} Median (lowest–highest), MB/s in batches of 32, by bytes of a sample. "
            "[How to read it](../../docs/benchmarks.md).",
            self.table(),
            "![Throughput by size of a sample](front.png)",
            self.sentence(),
            f"The best peer is, at each size, the fastest of: {'; '.join(dict.fromkeys(self._peer_of.values()))}."
            if self._peer_of
            else "No peer was measured: `make bench BENCH=--all` measures them.",
        ]
        if self._own != self._all and self._peer_of:
            parts.append(f"The peers were measured in another run: {self._all['settings']}")
        parts += ["## Machine", "\n".join(f"- {name}: {value}" for name, value in self._own["machine"].items())]
        return "\n\n".join(part for part in parts if part) + "\n"


def results(output: Path) -> Front | None:
    """Read front.json and stream.json of a folder; return None if both are missing."""
    paths = [output / f"{NAME}.json", output / "stream.json"]
    found = [json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for path in paths]
    own = max(found, key=lambda one: (bool(one), one.get("begun", "")))
    return Front(own, found[1]) if own else None


def render(output: Path) -> None:
    """Write front.md and front.png; for the project's own results, also update its pages."""
    front = results(output)
    if front is None:
        return
    (output / f"{NAME}.md").write_text(front.page(), encoding="utf-8")
    draw(front.figures, output / f"{NAME}.png")
    if output.resolve() == RESULTS:
        figure = f"![Throughput by size of a sample](../benchmarks/results/{NAME}.png)"
        write_between(ROOT / "docs" / "benchmarks.md", [front.table(), figure])
        if front.sentence():
            told = f"{front.sentence()} [All sizes](docs/benchmarks.md)."
            write_between(ROOT / "README.md", [textwrap.fill(told, 120, break_on_hyphens=False)])


def write_between(path: Path, parts: Sequence[str]) -> None:
    """Replace the text between the marks in a page; raise ValueError if the marks are missing."""
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {NAME}: made by python -m benchmarks --render -->", f"<!-- {NAME} ends -->"
    inside = "\n\n".join(parts)
    new, count = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n\n{inside}\n\n{end}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{path} has no part between '{begin}' and '{end}'. Put both on lines of their own.")
    path.write_text(new, encoding="utf-8")
