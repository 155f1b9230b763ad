"""Curves of a run over time, from metrics.jsonl: throughput, fill, waiting, and values that the script reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.reporting.plots import embed, figure, scaled
from mpidata.reporting.reading.lines import samples_of, waited_of
from mpidata.reporting.reading.run_snapshot import RunSnapshot

__all__ = ["draw_curves", "rates", "spans_a_decade", "thinned"]

_POINTS, _SPANS = 600, 60
_TRAINERS, _REPORTED = 8, 6  # most that have their own lines
_Line = dict[str, Any]
_Curve = NDArray[np.float64]


def draw_curves(look: RunSnapshot) -> str:
    """Draw the values of metrics.jsonl; "" if there are too few lines."""
    lines = thinned(look.metrics, _POINTS)
    if len(lines) < 3:
        return ""
    names = list(dict.fromkeys(name for line in lines for name in line.get("report") or {}))[:_REPORTED]
    groups = int(look.story.start.get("groups") or 0)
    own = 3 if groups else 2
    rows = own + len(names)
    with figure(1.5 * rows, rows, sharex=True) as (made, axes):
        _draw_throughput(axes[0], lines)
        _draw_waiting(axes[own - 1], thinned(lines, _SPANS), groups)
        if groups:
            _draw_fill(axes[1], lines)
        for axis, name in zip(axes[own:], names, strict=True):
            values = [(line["seconds"], (line.get("report") or {}).get(name)) for line in lines]
            known = [(second, value) for second, value in values if isinstance(value, (int, float))]
            label, curve = scaled(_short(name), np.array([value for _, value in known], float))
            axis.plot([second for second, _ in known], curve)
            if spans_a_decade(curve.tolist()):
                axis.set_yscale("log")
            axis.set_ylabel(label)
        axes[-1].set_xlabel("seconds of the run")
        what = ", ".join(["throughput", *(["fill"] if groups else []), "waiting", *names])
        return embed(made, f"Curves over time: {what}")


def thinned(lines: Sequence[_Line], most: int) -> list[_Line]:
    """Omit lines evenly, so that at most `most` are left, including the last one."""
    step = max(1, -(-len(lines) // most))
    return list(lines[::-1][::step][::-1])


def spans_a_decade(values: Sequence[float]) -> bool:
    """Whether the finite values are positive, and the greatest is more than ten times the least."""
    finite = [value for value in values if math.isfinite(value)]
    return bool(finite) and 0 < 10 * min(finite) < max(finite)


def rates(seconds: _Curve, counts: _Curve) -> tuple[_Curve, _Curve]:
    """Compute rates per second between lines, at their middles, without counts that a resume has reset."""
    passed, counted = np.diff(seconds), np.diff(counts)
    good = (passed > 0) & (counted >= 0)
    return (seconds[1:] + seconds[:-1])[good] / 2, counted[good] / passed[good]


def _draw_throughput(axis: Any, lines: Sequence[_Line]) -> None:
    at, came = rates(_column(lines, "seconds"), np.array([float(samples_of(line)) for line in lines]))
    axis.plot(at, came)
    axis.set_ylabel("samples/s")
    axis.set_ylim(0, 1.08 * max(came, default=1.0) or 1.0)


def _draw_fill(axis: Any, lines: Sequence[_Line]) -> None:
    trainers = len(lines[-1]["fill"])
    same = [line for line in lines if len(line["fill"]) == trainers]  # a resume may change the number
    fills, seconds = np.array([line["fill"] for line in same], float), _column(same, "seconds")
    if trainers <= _TRAINERS:
        axis.plot(seconds, fills, label=[f"trainer {i}" for i in range(trainers)])
    else:
        axis.plot(seconds, fills.mean(1), label="mean of the trainers")
        axis.fill_between(seconds, fills.min(1), fills.max(1), alpha=0.3, linewidth=0, label="least to greatest")
    axis.set_ylabel("buffer fill")
    axis.set_ylim(-0.03, 1.03)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_waiting(axis: Any, lines: Sequence[_Line], groups: int) -> None:
    seconds = _column(lines, "seconds")
    curves = {"training, for data": np.array([float(np.mean(waited_of(line) or [0])) for line in lines])}
    if groups:
        curves["groups, for room"] = _of_groups(lines, "room_s") / groups
        curves["groups, for a simulation"] = _of_groups(lines, "next_s") / groups
    for what, waited in curves.items():
        axis.step(*rates(seconds, waited), where="mid", label=what)
    axis.set_ylabel("share waiting")
    axis.set_ylim(-0.03, 1.03)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _of_groups(lines: Sequence[_Line], name: str) -> _Curve:
    """Return seconds of all groups for their closed simulations; nothing is known about the others."""
    return np.array([float((line.get("groups") or {}).get(name, 0.0)) for line in lines])


def _column(lines: Sequence[_Line], name: str) -> _Curve:
    return np.array([float(line[name]) for line in lines])


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"
