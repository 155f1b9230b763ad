"""Runs the stream benchmark: all contenders in turn, at each size, round after round."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import front
from benchmarks.contender import Cell, Contender
from benchmarks.figures import Figures, Measurement
from benchmarks.machine import describe
from benchmarks.plot import draw
from benchmarks.rounds import Due, keep, key_of, resume, sentence, take, turned
from benchmarks.table import page

__all__ = ["SIZES", "Settings", "render", "run"]

SIZES = [1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Measuring time, sizes, and the file for the results: that of all contenders or that of the front page."""

    rounds: int
    seconds: float
    sizes: Sequence[int]
    output: Path
    name: str = "stream"


def run(contenders: Sequence[Contender], settings: Settings) -> list[str]:
    """Measure, and write the page after every round; return what is missing or failed.

    Results in the file with the same key are not measured again. The file is written after every measurement.
    """
    path, machine = settings.output / f"{settings.name}.json", describe()
    key = key_of(settings.seconds, machine)
    before = resume(path, key)
    measurements = [Measurement(**one) for one in before.get("measurements", [])]
    known = {(one.contender, one.sample_bytes, one.round) for one in measurements}
    reasons = {contender.name: contender.missing() for contender in contenders}
    missing = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
    ready = [contender for contender in contenders if not reasons[contender.name]]
    file = {"key": key, "machine": before.get("machine", machine), "begun": before.get("begun", _now())}
    file |= _rows(contenders, before)

    def one(contender: Contender, size: int, number: int) -> None:
        measurements.append(measure(contender, size, number, settings.seconds))

    def save(without: Sequence[str]) -> None:
        rounds = max((one.round + 1 for one in measurements), default=1)
        told = {"settings": sentence(rounds, settings.seconds), "without": [*missing, *without]}
        keep(path, {**file, **told, "measurements": [dataclasses.asdict(one) for one in measurements]})

    due = [
        [
            Due(f"{contender.name}, {size} bytes, round {number + 1}", partial(one, contender, size, number))
            for size in settings.sizes
            for contender in turned(ready, number)
            if (contender.name, size, number) not in known
        ]
        for number in range(settings.rounds)
    ]
    return missing + take(due, save, lambda: render(settings.output))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _rows(contenders: Sequence[Contender], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contenders and the description of each row, including those measured before."""
    rows: dict[str, list[str]] = {row: list(names) for row, names in before.get("rows", {}).items()}
    about: dict[str, str] = dict(before.get("about", {}))
    for contender in contenders:
        names = rows.setdefault(contender.row, [])
        names += [contender.name] if contender.name not in names else []
        about.setdefault(contender.row, contender.about)
    return {"rows": rows, "about": about}


def measure(contender: Contender, size: int, number: int, seconds: float) -> Measurement:
    """Take one measurement in its own folder; raise BenchmarkError on failure."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell.plan(Path(folder), size, seconds)
        cell.write()
        result = contender.measure(cell)
    found = Measurement(contender.name, size, number, result.samples, result.seconds)
    print(f"{number + 1:2d}  {contender.name:28s} {size:8d} bytes  {found.rate * size / 1e6:8.0f} MB/s", flush=True)
    return found


def render(output: Path) -> None:
    """Write stream.md and stream.png from stream.json, and the front page from the stored results."""
    if (output / "stream.json").exists():
        _render_all(output)
    front.render(output)


def _render_all(output: Path) -> None:
    values = json.loads((output / "stream.json").read_text(encoding="utf-8"))
    measurements = [Measurement(**one) for one in values["measurements"]]
    measured = {one.contender for one in measurements}
    rows = {row: names for row, names in values["rows"].items() if measured.intersection(names)}
    figures = Figures(measurements, rows)
    ways = Figures(measurements, {n: [n] for names in rows.values() if len(names) > 1 for n in names})
    text = page(figures, ways, values["machine"], values["settings"], values["about"], values["without"])
    (output / "stream.md").write_text(text, encoding="utf-8")
    draw(figures, output / "stream.png")
