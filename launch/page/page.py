"""The page of a job: bars for simulations, groups and buffers, sparklines, losses, and the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mpidata.launch.page.console import escaped
from mpidata.launch.page.line import fills, loaded
from mpidata.launch.page.view import LOST, View
from mpidata.reporting.reading.lines import waited_of
from mpidata.sizes import size_text

__all__ = ["draw", "left_s", "sparkline"]

_BLOCKS = "▁▂▃▄▅▆▇█"
_SHARES = {  # of the groups' time
    "compute_s": ("computing", "green", "█"),
    "room_s": ("no room", "yellow", "▓"),
    "next_s": ("no simulation", "blue", "▒"),
    "start_s": ("starting", "magenta", "░"),
}
_COLOURS = {"running": "cyan", "complete": "green", "stopped": "yellow", "failed": "red", "gone": "red"}
# For terminals without these characters.
_PLAIN = str.maketrans("█▓▒░·" + _BLOCKS[:-1], "#%o-." + "_.,-~=*")
_RECENT = 30  # lines of metrics.jsonl
_LEFT = 14  # columns of names
_BUFFERS = 16  # most buffers that get a bar each


def draw(view: View, width: int, height: int, coding: str = "utf-8") -> RenderableType:
    """Make a page of at most `width` columns and `height` lines, for a terminal with this character encoding."""
    if not view.figures:
        none = Text("Waiting for all ranks to join." if view.status == "running" else "No figures.")
        return Group(_head(view), none, *_problems(view))
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=_LEFT)
    table.add_column(no_wrap=True, overflow="ellipsis", width=max(10, width - _LEFT - 1))
    room, bar = max(1, height - 2), max(10, min(40, width - _LEFT - 34))
    rows = [*_simulations(view, bar), *_groups(view, bar), *_curves(view, bar)]
    rows += [("loaders", Text(", ".join(told)))] if (told := loaded(view.figures)) else []
    after = [*_slowest(view), *_lost(view)]
    rows += _buffers(view, bar, max(1, room - len(rows) - len(after)))
    for name, text in [*rows, *after][:room]:
        if not coding.lower().startswith("utf"):
            text.plain = text.plain.translate(_PLAIN)
        table.add_row(escaped(Text(name)), text)
    parts: list[RenderableType] = [_head(view), table]
    if view.error:
        parts.append(escaped(Text(view.error, "red")))
    return Group(*parts, *_problems(view))


def _problems(view: View) -> list[Text]:
    return [escaped(Text(problem, "red")) for problem in view.problems]


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Draw values as block characters of eighths, each the mean of equally many values; unknown ones are blank."""
    if not values or width < 1:
        return ""
    finite = [v if v is not None and math.isfinite(v) else None for v in values]
    largest = max((abs(v) for v in finite if v is not None), default=0.0) or 1.0
    step = max(1, math.ceil(len(values) / width))
    # As parts of the largest, so that no sum or difference overflows.
    parts = [[v / largest for v in finite[i : i + step] if v is not None] for i in range(0, len(values), step)]
    means = [sum(part) / len(part) if part else None for part in parts]
    known = [mean for mean in means if mean is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = high - low or 1.0
    return "".join(" " if mean is None else _BLOCKS[round(7 * ((mean - low) / span))] for mean in means)


def left_s(view: View) -> float | None:
    """Estimate the seconds until the last simulation ends, from the rate in the newer half of the metrics."""
    lines = view.metrics
    simulations = view.figures.get("simulations", {})
    if view.status != "running" or len(lines) < 4:
        return None
    middle, last = lines[len(lines) // 2], lines[-1]
    ended = _ended(last) - _ended(middle)
    missing = int(simulations.get("requested", 0)) - _ended(last)
    if ended <= 0 or missing <= 0:
        return None
    return missing * float(last["seconds"] - middle["seconds"]) / ended


def _ended(line: dict[str, Any]) -> int:
    simulations = line.get("simulations") or {}
    return sum(int(simulations.get(state, 0)) for state in ("complete", "failed", "cancelled"))


def _head(view: View) -> Text:
    text = Text(f"{view.run.path.parent.name}/{view.run.path.name} ", "bold")
    text.append(view.status, f"bold {_COLOURS.get(view.status, '')}".strip())
    if view.figures:
        text.append(f"  {_span(view.figures.get('seconds', 0.0))}")
    left = left_s(view)
    if left is not None:
        text.append(f", about {_span(left)} more")
    return text


def _simulations(view: View, bar: int) -> list[tuple[str, Text]]:
    of = view.figures.get("simulations", {})
    if not of.get("requested"):
        return []
    failed = "".join(f", {of[state]} {state}" for state in ("failed", "cancelled") if of.get(state))
    told = f"{of['complete']}/{of['requested']}, {of['running']} running{failed}"
    return [("simulations", _bar(of["complete"] / of["requested"], bar, "green").append(f" {told}"))]


def _groups(view: View, bar: int) -> list[tuple[str, Text]]:
    """Draw how all groups have recently spent their time, as parts of one bar."""
    recent = [line.get("groups") or {} for line in view.metrics[-_RECENT:]]
    if not recent or not view.start.get("groups"):
        return []
    first = recent[0] if len(recent) > 1 else {}
    spent = {name: max(0.0, recent[-1].get(name, 0.0) - first.get(name, 0.0)) for name in _SHARES}
    if not (total := sum(spent.values())):
        spent = {name: recent[-1].get(name, 0.0) for name in _SHARES}
    if not (total := sum(spent.values())):
        return []
    text, told, edge, at = Text(), [], 0.0, 0
    for name, (what, colour, block) in _SHARES.items():
        edge += bar * spent[name] / total
        text.append(block * (round(edge) - at), colour)
        at = round(edge)
        if spent[name] >= 0.005 * total:
            told.append((f"{block} {100 * spent[name] / total:.0f} % {what}", colour))
    below = Text()
    for i, (words, colour) in enumerate(told):
        below.append("  " if i else "").append(words, colour)
    return [(f"{view.start['groups']} groups", text), ("", below)]


def _curves(view: View, bar: int) -> list[tuple[str, Text]]:
    lines, rows, samples = view.metrics, [], view.figures.get("samples", {})
    if view.figures.get("simulations", {}).get("requested"):
        came = sparkline([_rate(a, b) for a, b in pairwise(lines)], bar)
        told = f"{samples.get('per_second', 0.0):.0f}, {samples.get('received', 0)} in all"
        rows.append(("samples/s", _curve(came, "cyan", told)))
    waits = [_waited(a, b) for a, b in pairwise(lines)]
    if recent := [wait for wait in waits[-_RECENT:] if wait is not None]:
        told = f"{100 * sum(recent) / len(recent):.0f} % of its time"
        rows.append(("training waits", _curve(sparkline(waits, bar), "yellow", told)))
    for name, value in (view.figures.get("report") or {}).items():
        reported = sparkline([(line.get("report") or {}).get(name) for line in lines], bar)
        rows.append((name, _curve(reported, "magenta", "nan" if value is None else f"{value:.4g}")))
    return rows


def _curve(line: str, colour: str, told: str) -> Text:
    return Text(line, colour).append(f" {told}" if line else told, "default")


def _rate(a: dict[str, Any], b: dict[str, Any]) -> float | None:
    passed, came = b["seconds"] - a["seconds"], sum(b["received"]) - sum(a["received"])
    return came / passed if passed > 0 and came >= 0 else None


def _waited(a: dict[str, Any], b: dict[str, Any]) -> float | None:
    passed, waited = b["seconds"] - a["seconds"], sum(waited_of(b)) - sum(waited_of(a))
    return min(1.0, waited / passed / len(b["waited_s"])) if passed > 0 and waited >= 0 and b["waited_s"] else None


def _buffers(view: View, bar: int, room: int) -> list[tuple[str, Text]]:
    """Draw a bar for each buffer, or one for all if there is no room."""
    buffers, capacity = fills(view.figures), view.figures.get("capacity", 0)
    if view.figures.get("capacity_in_bytes"):
        capacity = size_text(capacity)
    batches = view.figures.get("batches") or [0] * len(buffers)
    if not view.figures.get("simulations", {}).get("requested") or not buffers:
        return []
    if len(buffers) <= min(room, _BUFFERS):
        return [
            (f"buffer {i}", _bar(fill, bar, "blue").append(f" {100 * fill:.0f} % of {capacity}, {batches[i]} batches"))
            if state == "trains"
            else (f"buffer {i}", Text(f"{state}, {batches[i]} batches", "dim"))
            for i, (fill, state) in enumerate(buffers)
        ]
    used = [(fill, drawn) for (fill, state), drawn in zip(buffers, batches, strict=True) if state == "trains"]
    full, drawn = zip(*used or [(0.0, 0)], strict=True)
    ends = f" {100 * min(full):.0f} to {100 * max(full):.0f} % of {capacity}, {min(drawn)} to {max(drawn)} batches"
    return [(f"{len(used)} buffers", _bar(sum(full) / len(full), bar, "blue").append(ends))]


def _slowest(view: View) -> list[tuple[str, Text]]:
    groups = (view.metrics[-1].get("groups") or {}) if view.metrics else {}
    slowest, quantiles = groups.get("slowest") or [], groups.get("step_s") or []
    if not slowest or len(quantiles) != 5:
        return []
    named = ", ".join(f"{group}: {_short(step)}" for group, step in slowest)
    return [("s a step", Text(f"half of the groups {_short(quantiles[2])}; slowest {named}"))]


def _lost(view: View) -> list[tuple[str, Text]]:
    told = ", ".join(f"{what}: {view.lost[kind]}" for kind, what in LOST.items() if view.lost[kind])
    return [("lost", Text(told, "red"))] if told else []


def _bar(share: float, width: int, colour: str) -> Text:
    full = round(width * min(1.0, max(0.0, share)))
    return Text("█" * full, colour).append("·" * (width - full), "dim")


def _short(seconds: float) -> str:
    return f"{seconds:.2g}"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"
