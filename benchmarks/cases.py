"""Shared code of the benchmarks other than the stream's: values by case and round, pages and plots."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks.figures import Spread
from benchmarks.machine import describe
from benchmarks.rounds import Due, keep, key_of, resume, sentence, take, turned
from benchmarks.table import cell

__all__ = ["Benchmark", "Case", "Results", "Settings", "curves", "exponent", "grid", "page"]

Values = dict[str, dict[str, list[float | None]]]  # by case and quantity, one per round; None if the round failed


@dataclasses.dataclass(frozen=True)
class Settings:
    """Measuring time, and the folder for the pages."""

    rounds: int
    seconds: float
    output: Path


class Benchmark(Protocol):
    """A module with one benchmark: NAME, ABOUT, `run`, which returns what failed, and `render`."""

    NAME: str
    ABOUT: str

    def run(self, settings: Settings) -> list[str]:
        """Measure, and write the page after every round; return what is missing or failed."""

    def render(self, output: Path) -> None:
        """Write the page from the stored results."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A case by its name; `measure` returns values by quantity and may raise BenchmarkError."""

    name: str
    measure: Callable[[], Mapping[str, float]]


class Results:
    """Values of cases in rounds.

    Parameters
    ----------
    values : mapping
        `values[case][quantity]` is a list with one number per round, None if the round failed.
    """

    def __init__(self, values: Mapping[str, Mapping[str, Sequence[float | None]]]) -> None:
        self._values = values

    @property
    def cases(self) -> list[str]:
        """Names of the cases, in the order of measurement."""
        return list(self._values)

    def spread(self, case: str, quantity: str, factor: float = 1.0) -> Spread | None:
        """Median, minimum and maximum over the rounds."""
        return Spread.of(factor * value for value in self._of(case, quantity) if value is not None)

    def ratio(self, case: str, to: str, quantity: str) -> Spread | None:
        """Return the ratio of two cases, computed within each round."""
        pairs = zip(self._of(case, quantity), self._of(to, quantity), strict=False)
        return Spread.of(mine / other for mine, other in pairs if mine is not None and other)

    def difference(self, case: str, to: str, quantity: str) -> Spread | None:
        """Return the difference of two cases, computed within each round."""
        pairs = zip(self._of(case, quantity), self._of(to, quantity), strict=False)
        return Spread.of(mine - other for mine, other in pairs if mine is not None and other is not None)

    def _of(self, case: str, quantity: str) -> Sequence[float | None]:
        return self._values.get(case, {}).get(quantity, [])


def run_rounds(
    name: str, cases: Sequence[Case], settings: Settings, render: Callable[[Path], None], missing: Sequence[str] = ()
) -> list[str]:
    """Measure all cases in turn, round after round; each round starts with a different case.

    Results in <name>.json with the same key are not measured again. The file is written after every measurement, the
    page after every round. Return the given `missing` and what failed.
    """
    path, machine = settings.output / f"{name}.json", describe()
    key = key_of(settings.seconds, machine)
    before = resume(path, key)
    values: Values = {case.name: before.get("values", {}).get(case.name, {}) for case in cases}

    def measure(case: Case, number: int) -> None:
        found: Mapping[str, float] = {}
        try:
            found = case.measure()
            told = ", ".join(f"{quantity} {value:.4g}" for quantity, value in found.items())
            print(f"{number + 1:2d}  {name}: {case.name:28s} {told}", flush=True)
        finally:
            _put(values[case.name], number, found)

    def save(without: Sequence[str]) -> None:
        rounds = max((len(row) for of in values.values() for row in of.values()), default=1)
        told = {"settings": sentence(rounds, settings.seconds), "without": [*missing, *without], "values": values}
        keep(path, {"key": key, "machine": before.get("machine", machine), **told})

    due = [
        [
            Due(f"{case.name}, round {number + 1}", partial(measure, case, number))
            for case in turned(cases, number)
            if not _measured(values[case.name], number)
        ]
        for number in range(settings.rounds)
    ]
    return [*missing, *take(due, save, lambda: render(settings.output))]


def _measured(of: Mapping[str, Sequence[float | None]], number: int) -> bool:
    return any(row[number] is not None for row in of.values() if len(row) > number)


def _put(of: dict[str, list[float | None]], number: int, found: Mapping[str, float]) -> None:
    for quantity in found.keys() | of.keys():
        row = of.setdefault(quantity, [])
        row += [None] * (number + 1 - len(row))
        row[number] = found.get(quantity)


def grid(corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[Spread | None | str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {corner} | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for name, entries in rows.items():
        texts = [entry if isinstance(entry, str) else cell(entry) for entry in entries]
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def page(name: str, title: str, contents: Mapping[str, Any], parts: Sequence[str]) -> str:
    """Return the page of a benchmark: title, plot, parts, what is missing, machine."""
    text = [
        f"# {title}",
        contents["settings"] + f" Median (lowest–highest). [How to read it](../../docs/benchmarks.md#{name}).",
        f"![{title}]({name}.png)",
        *parts,
    ]
    if contents["without"]:
        text += ["## What is missing", "\n".join(f"- {line}" for line in contents["without"])]
    text += ["## Machine", "\n".join(f"- {what}: {value}" for what, value in contents["machine"].items())]
    return "\n\n".join(text) + "\n"


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the line through the points on log axes: 1 if y grows as x, 0 if y is constant."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    middle_x = sum(x for x, _ in logs) / len(logs)
    middle_y = sum(y for _, y in logs) / len(logs)
    return sum((x - middle_x) * (y - middle_y) for x, y in logs) / sum((x - middle_x) ** 2 for x, _ in logs)


@dataclasses.dataclass(frozen=True)
class Plot:
    """One plot: lines by name, each a list of (x, spread)."""

    lines: Mapping[str, Sequence[tuple[float, Spread | None]]]
    x: str
    y: str
    log: str = "xy"


def curves(path: Path, plots: Sequence[Plot]) -> None:
    """Draw plots side by side, and write a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(plots), figsize=(6.5 * len(plots), 5), layout="constrained", squeeze=False)
    for axis, plot in zip(axes[0], plots, strict=True):
        for name, points in plot.lines.items():
            known = [(x, spread) for x, spread in points if spread]
            if not known:
                continue
            middle = [spread.median for _, spread in known]
            errors = [[s.median - s.low for _, s in known], [s.high - s.median for _, s in known]]
            axis.errorbar([x for x, _ in known], middle, yerr=errors, marker="o", capsize=3, label=name)
        if "x" in plot.log and axis.has_data():
            axis.set_xscale("log")
        if "y" in plot.log and axis.has_data():
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.set(xlabel=plot.x, ylabel=plot.y)
        axis.grid(alpha=0.3)
        if len(axis.get_legend_handles_labels()[1]) > 1:
            axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def load(output: Path, name: str) -> tuple[dict[str, Any], Results]:
    """Read <name>.json."""
    contents = json.loads((output / f"{name}.json").read_text(encoding="utf-8"))
    return contents, Results(contents["values"])
