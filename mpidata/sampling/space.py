"""The space of the parameters, mapped to the unit cube and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.config.parameters import Points

__all__ = ["Space"]

Array = npt.NDArray[np.float64]


class Space:
    """The space of a job: each parameter is one side of the unit cube.

    Parameters
    ----------
    axes : sequence
        As in `parameters.space`: pairs, or Points. Whole numbers and choices divide their side evenly.
    """

    def __init__(self, axes: Sequence[Any]) -> None:
        self._axes = axes

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self._axes)

    def scale(self, unit: Array) -> Array:
        """Map points of the cube to parameters, each float64, shape (n, number of parameters)."""
        scaled = np.empty_like(unit)  # a job without solvers has no parameters
        for at, axis in enumerate(self._axes):
            scaled[:, at] = _scaled(axis, unit[:, at])
        return scaled

    def unit(self, parameters: Array) -> Array:
        """Map parameters to points: the inverse of `scale`, at the middle of the interval of the same value."""
        unit = np.empty_like(parameters)
        for at, axis in enumerate(self._axes):
            unit[:, at] = _unit(axis, parameters[:, at])
        return np.clip(unit, 0.0, 1.0)


def _scaled(axis: Any, unit: Array) -> Array:
    if _is_stepped(axis):
        which = np.minimum((unit * len(axis.all)).astype(np.int64), len(axis.all) - 1)
        return which + float(axis.all[0]) if isinstance(axis.all, range) else np.array(axis.all)[which]
    low, high = _ends(axis)
    # Not low + unit * (high - low), which overflows if the range is wider than the largest float64.
    scaled: Array = np.clip(low * (1.0 - unit) + high * unit, low, high)
    return scaled


def _unit(axis: Any, values: Array) -> Array:
    if not _is_stepped(axis):
        low, high = _ends(axis)
        return (values / 2 - low / 2) / (high / 2 - low / 2)
    if isinstance(axis.all, range):
        which = values - axis.all[0]
    else:
        which = np.abs(values[:, None] - np.array(axis.all)).argmin(axis=1).astype(np.float64)
    return (which + 0.5) / len(axis.all)


def _is_stepped(axis: Any) -> bool:
    return isinstance(axis, Points) and (axis.values is None or bool(axis.texts))


def _ends(axis: Any) -> tuple[float, float]:
    return (min(axis.all), max(axis.all)) if isinstance(axis, Points) else axis
