"""The style of a report's plots, and embedding them in the page without another file."""

from __future__ import annotations

import base64
import contextlib
import html
import importlib.util
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import MpidataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "LINES", "MISSING", "WIDTH", "embed", "figure", "has_matplotlib", "scaled"]

MISSING = "its plots need matplotlib, which is not installed. Get it with: pip install 'mpidata[report]'"

# Okabe and Ito's, which the colour-blind can distinguish; lines also differ by their dashes, in print.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "grey": "#999999",
}
LINES = ["-", "--", "-.", ":", (0, (6, 1)), (0, (1, 1))]
WIDTH = 9.5
_LARGEST = 1e300

_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def has_matplotlib() -> bool:
    """Whether plots can be made."""
    return importlib.util.find_spec("matplotlib") is not None


def scaled(name: str, values: NDArray[np.float64]) -> tuple[str, NDArray[np.float64]]:
    """Return a label and values; if matplotlib cannot compute their differences, a fraction that the label names."""
    if (np.abs(values[np.isfinite(values)]) > _LARGEST).any():
        return f"{name} / 1e10", values / 1e10
    return name, values


@contextlib.contextmanager
def figure(height: float, rows: int = 1, columns: int = 1, **more: Any) -> Iterator[tuple[Figure, Any]]:
    """Make a figure with axes in these rows and columns, without a display.

    Raises
    ------
    MpidataError
        matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from cycler import cycler
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MpidataError(f"No report can be made: {MISSING}") from None
    from itertools import cycle, islice

    colours = list(COLOURS.values())[:6]
    with mpl.rc_context({**_STYLE, "axes.prop_cycle": cycler(color=colours, linestyle=list(islice(cycle(LINES), 6)))}):
        made = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, **more)


def embed(made: Figure, text: str, raster: bool = False) -> str:
    """Return an `<img>` with the figure in it: as SVG, or with `raster` as PNG, for many points.

    Parameters
    ----------
    made : Figure
        From `figure`, within its `with` block.
    text : str
        Alternative text.
    raster : bool
        Whether to write PNG.
    """
    file = io.BytesIO()
    kind = {"format": "png", "dpi": 130} if raster else {"format": "svg", "metadata": {"Date": None}}
    made.savefig(file, **kind)
    mime = "image/png" if raster else "image/svg+xml"
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(text)}" src="data:{mime};base64,{data}">'
