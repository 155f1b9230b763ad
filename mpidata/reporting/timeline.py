"""The timeline of a run: which group computed when, and incidents."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.reporting.plots import COLOURS, embed, figure
from mpidata.reporting.reading.history import Bar, History

__all__ = ["MOST_BARS", "busy_shares", "draw_timeline"]

MOST_BARS = 2000
_BINS, _ROWS = 500, 200
_LOOKS: dict[str, dict[str, Any]] = {
    "complete": {"facecolor": COLOURS["blue"]},
    "failed": {"facecolor": COLOURS["red"], "hatch": "xx"},
    "lost": {"facecolor": COLOURS["orange"], "hatch": "//"},
    "unfinished": {"facecolor": "white", "edgecolor": COLOURS["grey"], "hatch": ".."},
}
_MARKS: dict[str, dict[str, Any]] = {
    "group lost": {"marker": "X", "color": "black"},
    "retry": {"marker": "^", "color": COLOURS["orange"]},
    "set aside": {"marker": "v", "color": COLOURS["red"]},
}
_LINES = {
    "checkpoint": COLOURS["green"],
    "relief": COLOURS["purple"],
    "error": COLOURS["red"],
    "trainer lost": "black",
    "trainer joined": COLOURS["blue"],
    "trainer retired": COLOURS["grey"],
}


def draw_timeline(story: History) -> str:
    """Draw a bar for each simulation of each group, or how busy the groups were if there are too many simulations."""
    rows = min(story.groups, _ROWS)
    many = len(story.bars) > MOST_BARS
    with figure(1.6 + min(6.0, 0.16 * rows + 0.3)) as (made, axes):
        if many:
            _draw_bins(made, axes, story)
        else:
            _draw_bars(axes, story.bars)
            _draw_waiting(axes, story.bars)
        _draw_marks(axes, story)
        axes.set(xlabel="seconds of the run", ylabel="group", xlim=(0, max(story.clock.last, 1e-3)))
        axes.set_ylim(story.groups - 0.4, -0.6)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.grid(visible=False, axis="y")
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            made.legend(handles, labels, loc="outside upper left", ncols=6)
        counted = Counter(bar.how for bar in story.bars)
        text = ", ".join(f"{count} {how}" for how, count in counted.items())
        return embed(made, f"Timeline of {story.groups} groups with {text or 'no'} simulations", raster=many)


def _draw_bars(axes: Any, bars: list[Bar]) -> None:
    for how, look in _LOOKS.items():
        chosen = [bar for bar in bars if bar.how == how]
        if not chosen:
            continue
        axes.barh(
            [bar.group for bar in chosen],
            [bar.end - bar.begin for bar in chosen],
            left=[bar.begin for bar in chosen],
            height=0.8,
            linewidth=0.4,
            label=f"simulation, {how}" if how != "complete" else "simulation",
            **{"edgecolor": "white", **look},
        )


def _draw_waiting(axes: Any, bars: list[Bar]) -> None:
    """Shade, at the end of each bar, the total time for which the simulation waited for room."""
    chosen = [bar for bar in bars if bar.room > 0.01 * (bar.end - bar.begin)]
    if chosen:
        widths = [min(bar.room, bar.end - bar.begin) for bar in chosen]
        left = [bar.end - width for bar, width in zip(chosen, widths, strict=True)]
        look: dict[str, Any] = {"facecolor": COLOURS["sky"], "edgecolor": "white", "hatch": "--"}
        look |= {"height": 0.8, "linewidth": 0.4, "label": "of which waiting for room"}
        axes.barh([bar.group for bar in chosen], widths, left=left, **look)


def busy_shares(story: History, bins: int, rows: int) -> NDArray[np.float64]:
    """Compute the share of time for which simulations ran, by group and time, shape (rows, bins); NaN before the first.

    If there are more groups than rows, neighbours share a row.
    """
    begin = np.array([bar.begin for bar in story.bars])
    end = np.array([bar.end for bar in story.bars])
    row = np.array([bar.group for bar in story.bars]) * rows // max(story.groups, 1)
    edges = np.linspace(0.0, max(story.clock.last, 1e-9), bins + 1)
    width = edges[1]
    # The time of each bar before an edge; the differences are the times in the bins. Summed in steps of two edges.
    total = np.zeros((rows, bins + 2))
    for at, sign in ((begin, 1.0), (end, -1.0)):
        index = np.clip((at / width).astype(int), 0, bins - 1)
        part = np.clip(at / width - index, 0.0, 1.0)
        np.add.at(total, (row, index), sign * (1.0 - part))
        np.add.at(total, (row, index + 1), sign * part)
    shares = np.cumsum(total, axis=1)[:, :bins]
    in_row = np.bincount(np.arange(story.groups) * rows // max(story.groups, 1), minlength=rows)
    return shares / np.maximum(in_row, 1)[:, None]


def _draw_bins(made: Any, axes: Any, story: History) -> None:
    rows = min(story.groups, _ROWS)
    shares = np.clip(busy_shares(story, _BINS, rows), 0.0, 1.0)
    extent = (0.0, story.clock.last, story.groups - 0.5, -0.5)
    picture = axes.imshow(shares, aspect="auto", extent=extent, cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    made.colorbar(picture, ax=axes, label="share of time in a simulation", pad=0.01)


def _draw_marks(axes: Any, story: History) -> None:
    for what, look in _MARKS.items():
        chosen = [mark for mark in story.marks if mark.what == what and mark.group is not None]
        if chosen:
            step = -(-len(chosen) // MOST_BARS)
            chosen = chosen[::step]
            axes.scatter(
                [m.time for m in chosen], [m.group for m in chosen], s=28, zorder=3, linewidths=0.5,
                edgecolors="white", label=what, **look,
            )  # fmt: skip
    for what, colour in _LINES.items():
        times = [mark.time for mark in story.marks if mark.what == what]
        for i, time in enumerate(times[:: -(-len(times) // 100) or 1]):
            axes.axvline(time, color=colour, linestyle="--", linewidth=1, label=what if not i else None)
    for i, second in enumerate(story.clock.resumes):
        axes.axvline(second, color="black", linewidth=1.2, label="resumed" if not i else None)
