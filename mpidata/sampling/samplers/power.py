"""The sampler `power`: candidates chosen in proportion to a power of their estimated loss, after arXiv 2408.01536."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.config.parameters import PowerKeys
from mpidata.sampling.samplers.generator import jumped
from mpidata.sampling.samplers.observations import Observed
from mpidata.sampling.space import Space

__all__ = ["Power"]

Array = npt.NDArray[np.float64]
_NEIGHBOURS = 8


class Power:
    """Draws each generation from a new pool of candidates.

    Parameters
    ----------
    space : Space
        The job's parameters.
    seed : int
        Determines all draws, together with the observations.
    keys : PowerKeys
        `parameters.power`.
    """

    def __init__(self, space: Space, seed: int, keys: PowerKeys) -> None:
        self._space, self._keys = space, keys
        self._random = np.random.default_rng(seed)
        self._observed = Observed(len(space), keys.window)

    def observe(self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array]) -> None:
        """Process observed simulations, shape (n,), (n, number of parameters): their `mean` loss."""
        self._observed.add(simulations, self._space.unit(parameters), losses["mean"])

    def sample(self, count: int) -> tuple[Array, list[str], list[int]]:
        """Draw `count` rows, shape (count, number of parameters), each with its rule and the nearest simulation."""
        pool = self._random.random((max(self._keys.candidates, count), len(self._space)))
        estimated, nearest = self._estimate(pool) if len(self._observed) else (np.zeros(len(pool)), None)
        most = estimated.max()
        # Relative to the greatest one, or a large exponent would make all of them 0 or infinite.
        weights = (estimated / most) ** self._keys.exponent if most > 0 else estimated
        if nearest is None or np.count_nonzero(weights) < count:
            return self._space.scale(pool[:count]), ["uniform"] * count, [-1] * count
        chosen = self._random.choice(len(pool), count, replace=False, p=weights / weights.sum())
        return self._space.scale(pool[chosen]), ["power"] * count, self._observed.ids[nearest[chosen]].tolist()

    def _estimate(self, pool: Array) -> tuple[Array, npt.NDArray[np.intp]]:
        """Estimate the loss of each candidate, at least 0, and find the nearest simulation."""
        points, k = self._observed.points, min(_NEIGHBOURS, len(self._observed))
        squares = (pool**2).sum(axis=1)[:, None] - 2.0 * pool @ points.T + (points**2).sum(axis=1)
        near = np.argpartition(squares, k - 1, axis=1)[:, :k]
        losses = np.maximum(self._observed.values[near].mean(axis=1), 0.0)
        return losses, squares.argmin(axis=1)

    def skip(self, parameters: Array) -> None:
        """Continue after rows that were drawn after the state; shape (n, number of parameters)."""
        self._random = jumped(self._random, len(parameters))

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes."""
        return {"random": self._random.bit_generator.state, "observed": self._observed.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state as if there had been no interruption."""
        self._random.bit_generator.state = state["random"]
        self._observed.load_state_dict(state["observed"])
