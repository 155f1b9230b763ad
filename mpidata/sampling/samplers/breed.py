"""The sampler `breed`: children of simulations that are hard for the model, after Breed (arXiv 2410.05860)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.config.parameters import BreedKeys
from mpidata.sampling.samplers.generator import jumped
from mpidata.sampling.samplers.observations import Observed
from mpidata.sampling.space import Space

__all__ = ["Breed"]

Array = npt.NDArray[np.float64]
# After this many halvings a child equals its parent exactly.
_MOST_TRIES = 60


class Breed:
    """Draws a share of each generation around parents, the rest uniformly.

    Parameters
    ----------
    space : Space
        The job's parameters.
    seed : int
        Determines all draws, together with the observations.
    keys : BreedKeys
        `parameters.breed`.
    """

    def __init__(self, space: Space, seed: int, keys: BreedKeys) -> None:
        self._space, self._keys = space, keys
        self._random = np.random.default_rng(seed)
        self._observed = Observed(len(space), keys.window)
        self._drawn = 0  # since the first losses

    def observe(self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array]) -> None:
        """Process observed simulations, shape (n,), (n, number of parameters): `excess` is their measure."""
        self._observed.add(simulations, self._space.unit(parameters), losses["excess"])

    def sample(self, count: int) -> tuple[Array, list[str], list[int]]:
        """Draw `count` rows, shape (count, number of parameters), each with its rule and its parent, -1 for none."""
        points = self._random.random((count, len(self._space)))
        parents = np.full(count, -1)
        weights = self._observed.values
        if weights.sum() > 0:
            bred = self._random.random(count) < self._share()
            which = self._random.choice(len(weights), bred.sum(), p=weights / weights.sum())
            parents[bred] = self._observed.ids[which]
            points[bred] = self._children(self._observed.points[which])
            self._drawn += count
        rules = ["uniform" if parent < 0 else "bred" for parent in parents.tolist()]
        return self._space.scale(points), rules, parents.tolist()

    def _share(self) -> float:
        keys = self._keys
        return keys.start + (keys.end - keys.start) * min(1.0, self._drawn / keys.breakpoint)

    def _children(self, parents: Array) -> Array:
        """Draw a child of each parent; one that is out of bounds is redrawn with half the deviation."""
        children, outside = parents.copy(), np.arange(len(parents))
        deviation = self._keys.sigma
        for _ in range(_MOST_TRIES):
            shape = (len(outside), len(self._space))
            children[outside] = parents[outside] + deviation * self._random.standard_normal(shape)
            outside = outside[((children[outside] < 0.0) | (children[outside] > 1.0)).any(axis=1)]
            deviation /= 2
            if not len(outside):
                break
        return np.clip(children, 0.0, 1.0)

    def skip(self, parameters: Array) -> None:
        """Continue after rows that were drawn after the state; shape (n, number of parameters)."""
        self._random = jumped(self._random, len(parameters))
        if self._observed.values.sum() > 0:
            self._drawn += len(parameters)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes."""
        state = {"random": self._random.bit_generator.state, "drawn": self._drawn}
        return state | {"observed": self._observed.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state as if there had been no interruption."""
        self._random.bit_generator.state = state["random"]
        # Earlier states count generations, of which 10 correspond to 200 simulations now.
        self._drawn = state["drawn"] if "drawn" in state else 20 * state["generation"]
        self._observed.load_state_dict(state["observed"])
