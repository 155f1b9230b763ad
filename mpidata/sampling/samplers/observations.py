"""The newest simulations with known losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Observed"]

Array = npt.NDArray[np.float64]


class Observed:
    """Points of the newest simulations, and a number for the model's error there.

    Parameters
    ----------
    dimensions : int
        Dimensions of the points.
    window : int
        Number of simulations that are kept: those with the greatest ids, which were drawn last.
    """

    def __init__(self, dimensions: int, window: int) -> None:
        self.ids = np.zeros(0, np.int64)
        self.points = np.zeros((0, dimensions))
        self.values = np.zeros(0)
        self._window = window

    def __len__(self) -> int:
        """Return the number of simulations."""
        return len(self.ids)

    def add(self, ids: npt.NDArray[np.int64], points: Array, values: Array) -> None:
        """Add simulations, or new values of them: shapes (n,), (n, dimensions), (n,)."""
        old = ~np.isin(self.ids, ids)
        all_ids = np.concatenate([self.ids[old], ids])
        newest = np.argsort(all_ids)[-self._window :]
        self.ids = all_ids[newest]
        self.points = np.concatenate([self.points[old], points])[newest]
        self.values = np.concatenate([self.values[old], values])[newest]

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes."""
        return {"ids": self.ids, "points": self.points, "values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self.ids, self.points, self.values = (np.array(state[name]) for name in ("ids", "points", "values"))
