"""Plots of the drawn parameters against one another, coloured by loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from mpidata.reporting.plots import COLOURS, embed, figure, scaled
from mpidata.reporting.reading.run_snapshot import RunSnapshot

__all__ = ["draw_parameters"]

_MOST_NAMES, _MOST_POINTS = 6, 5000
_LEAST_RANGE = 1e-300  # of a histogram, whose bins are a part of it


def draw_parameters(look: RunSnapshot) -> str:
    """Draw the first parameters against one another, and their histograms; "" if none is known."""
    table, names = look.parameters[:, :_MOST_NAMES], look.names[:_MOST_NAMES]
    ids = np.flatnonzero(np.isfinite(table).all(axis=1))
    if not names or not len(ids):
        return ""
    ids = ids[:: -(-len(ids) // _MOST_POINTS)]
    loss_label, losses = scaled("mean loss of the simulation", np.array([look.losses.get(int(i), np.nan) for i in ids]))
    columns = [scaled(name, table[ids, column]) for column, name in enumerate(names)]
    labels, size = [label for label, _ in columns], len(names)
    height = 2.6 if size == 1 else min(9.0, 1.6 * size + 0.6)
    with figure(height, size, size, squeeze=False) as (made, axes):
        points = None
        for row in range(size):
            for column in range(size):
                axis = axes[row, column]
                if column > row:
                    axis.set_axis_off()
                elif column == row:
                    _histogram(axis, columns[row][1])
                    axis.set_yticks([])
                else:
                    points = _scatter(axis, columns[column][1], columns[row][1], losses) or points
                _name(axis, labels, row, column, size)
        if points is not None:
            made.colorbar(points, ax=axes[:, -1], label=loss_label)
        text = f"{len(ids)} of {len(look.parameters)} simulations by their parameters {', '.join(names)}"
        return embed(made, text, raster=True)


def _histogram(axis: Any, values: npt.NDArray[np.float64]) -> None:
    low, high = float(values.min()), float(values.max())
    if high - low > max(1e-9 * max(abs(low), abs(high)), _LEAST_RANGE):
        axis.hist(values, bins=30, color=COLOURS["grey"])
    else:  # all equal, or so close that bins would have no width
        axis.axvline(low, color=COLOURS["grey"])


def _name(axis: Any, names: list[str], row: int, column: int, size: int) -> None:
    axis.tick_params(labelsize=7, labelbottom=row == size - 1, labelleft=column == 0 and row > 0)
    if row == size - 1:
        axis.set_xlabel(names[column])
    if column == 0 and row:
        axis.set_ylabel(names[row])


def _scatter(axis: Any, x: NDArray[np.float64], y: NDArray[np.float64], losses: NDArray[np.float64]) -> Any:
    known = np.isfinite(losses)
    size = float(np.clip(2000 / len(x), 3, 20))
    axis.scatter(x[~known], y[~known], s=size, color=COLOURS["grey"] if known.any() else COLOURS["blue"], linewidths=0)
    if not known.any():
        return None
    from matplotlib.colors import LogNorm, Normalize

    low, high = np.quantile(losses[known], [0.02, 0.98])
    norm = LogNorm(low, max(high, 1.001 * low)) if low > 0 else Normalize(low, high)
    return axis.scatter(x[known], y[known], c=losses[known], s=size, cmap="cividis", norm=norm, linewidths=0)
