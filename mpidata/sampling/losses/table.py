"""The losses of all simulations, as reported by all trainers: figures for the summary, and the file losses.csv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mpidata.native import structures
from mpidata.run.own_files import write_text
from mpidata.sampling.losses.sums import Sums, add, blank

__all__ = ["LossTable"]

_HEAD = "simulation,count,mean,max,last,excess,not_finite,difficulty\n"


class LossTable:
    """Losses by simulation.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self) -> None:
        self._sums = blank(0)
        self._new: set[int] = set()

    def add(self, sums: Sums) -> None:
        """Add the losses that a trainer reports."""
        most = 1 + int(sums["simulation"].max(initial=-1))
        if most > len(self._sums):
            before, self._sums = self._sums, blank(max(most, 2 * len(self._sums)))
            self._sums[: len(before)] = before
            self._sums["simulation"] = np.arange(len(self._sums))
        add(self._sums, sums["simulation"], sums)
        self._new.update(sums["simulation"].tolist())

    @property
    def has_news(self) -> bool:
        """Whether losses were added since the last call of `news`."""
        return bool(self._new)

    def news(self) -> Sums:
        """Return the sums of each simulation with losses added since the last call, in order of ids."""
        sums = self._sums[sorted(self._new)]
        self._new.clear()
        return sums

    def tell_again(self) -> None:
        """Mark all simulations with known losses as news."""
        self._new.update(self.told()["simulation"].tolist())

    def told(self) -> Sums:
        """Return the sums of each simulation with known losses, in order of ids."""
        sums = self._sums[(self._sums["count"] > 0) | (self._sums["not_finite"] > 0)]
        sums["max"][sums["count"] == 0] = 0.0
        return sums

    def summary(self) -> dict[str, float]:
        """Return figures over all losses; empty if none are known."""
        sums = self.told()
        count, bad = int(sums["count"].sum()), int(sums["not_finite"].sum())
        if not len(sums):
            return {}
        mean = float(sums["sum"].sum()) / max(count, 1)
        most = float(sums["max"].max(where=sums["count"] > 0, initial=-np.inf)) if count else 0.0
        return {"simulations": len(sums), "count": count, "mean": mean, "max": most, "not_finite": bad}

    def write(self, path: Path) -> None:
        """Write losses.csv atomically; writes nothing if no losses are known.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        sums = self.told()
        if not len(sums):
            return
        count = np.maximum(sums["count"], 1)
        columns = [sums["simulation"], sums["count"], sums["sum"] / count, sums["max"], sums["last"]]
        columns += [sums["excess"] / count, sums["not_finite"], sums["difficulty"] / count]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        write_text(path, _HEAD + "".join(",".join(map(repr, row)) + "\n" for row in rows))

    def state(self) -> dict[str, list[Any]]:
        """Return the state for JSON."""
        sums = self.told()
        return {name: sums[name].tolist() for name in sums.dtype.names or ()}

    def restore(self, state: Any, simulations: int) -> bool:
        """Restore the result of `state`; returns False if it is invalid, or of more simulations."""
        kinds = structures.LOSSES
        names = kinds.names or ()
        try:
            if state:  # states of earlier versions have no difficulty
                state = {"difficulty": [0.0] * len(state["count"]), **state}
            columns = [np.array(state[name], kinds[name]) if state else np.zeros(0) for name in names]
            sums = np.asarray(np.rec.fromarrays(columns, dtype=kinds))
        except (LookupError, TypeError, ValueError, OverflowError):
            return False
        ids = sums["simulation"]
        finite = all(np.isfinite(sums[name]).all() for name in ("sum", "max", "last", "excess", "difficulty"))
        if not finite or np.any((ids < 0) | (ids >= simulations) | (sums["count"] < 0) | (sums["not_finite"] < 0)):
            return False
        self.add(sums)
        return True
