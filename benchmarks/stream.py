"""Runs the stream benchmark: all contenders in turn, at every size, round after round."""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contender import BenchmarkError, Cell, Contender
from benchmarks.figures import Figures, Measurement
from benchmarks.machine import describe
from benchmarks.plot import draw
from benchmarks.table import page

__all__ = ["SIZES", "Settings", "render", "run"]

SIZES = [1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How long to measure, and what."""

    rounds: int
    seconds: float
    sizes: Sequence[int]
    output: Path

    def sentence(self) -> str:
        """For the page."""
        return f"{self.rounds} {'round' if self.rounds == 1 else 'rounds'} of {self.seconds:g} s each, alternated."


def run(contenders: Sequence[Contender], settings: Settings) -> list[str]:
    """Measure and write the page, after every round; returns what is missing or has failed."""
    machine, without, ready = describe(), [], []
    for contender in contenders:
        reason = contender.missing()
        if reason:
            without.append(f"{contender.name}: {reason}")
        else:
            ready.append(contender)
    measurements: list[Measurement] = []
    for number in range(settings.rounds):
        for size in settings.sizes:
            first = number % max(1, len(ready))
            for contender in ready[first:] + ready[:first]:
                try:
                    measurements.append(measure(contender, size, number, settings.seconds))
                except BenchmarkError as error:
                    without.append(f"{contender.name}, {size} bytes, round {number + 1}: failed")
                    print(f"{without[-1]}: {error}", file=sys.stderr)
        done = dataclasses.replace(settings, rounds=number + 1)
        _save(measurements, contenders, machine, done.sentence(), without, settings.output)
    return without


def measure(contender: Contender, size: int, number: int, seconds: float) -> Measurement:
    """Take one measurement, in a folder of its own; raises BenchmarkError."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell.plan(Path(folder), size, seconds)
        cell.write()
        result = contender.measure(cell)
    found = Measurement(contender.name, size, number, result.samples, result.seconds)
    print(f"{number + 1:2d}  {contender.name:28s} {size:8d} bytes  {found.rate * size / 1e6:8.0f} MB/s", flush=True)
    return found


def _save(
    measurements: Sequence[Measurement],
    contenders: Sequence[Contender],
    machine: dict[str, str],
    sentence: str,
    without: Sequence[str],
    output: Path,
) -> None:
    output.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[str]] = {}
    about: dict[str, str] = {}
    for contender in contenders:
        rows.setdefault(contender.row, []).append(contender.name)
        about.setdefault(contender.row, contender.about)
    values = {
        "rows": rows,
        "about": about,
        "machine": machine,
        "settings": sentence,
        "without": list(without),
        "measurements": [dataclasses.asdict(one) for one in measurements],
    }
    (output / "stream.json").write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    render(output)


def render(output: Path) -> None:
    """Write stream.md and stream.png anew from stream.json."""
    values = json.loads((output / "stream.json").read_text(encoding="utf-8"))
    measurements = [Measurement(**one) for one in values["measurements"]]
    measured = {one.contender for one in measurements}
    rows = {row: names for row, names in values["rows"].items() if measured.intersection(names)}
    figures = Figures(measurements, rows)
    ways = Figures(measurements, {n: [n] for names in rows.values() if len(names) > 1 for n in names})
    text = page(figures, ways, values["machine"], values["settings"], values["about"], values["without"])
    (output / "stream.md").write_text(text, encoding="utf-8")
    draw(figures, output / "stream.png")
