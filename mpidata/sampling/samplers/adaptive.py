"""The sampler `adaptive`: more simulations where the model is worse than elsewhere, by a bounded factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.config.parameters import AdaptiveKeys
from mpidata.sampling.samplers.difficulty import fit
from mpidata.sampling.samplers.observations import Observed
from mpidata.sampling.space import Space

__all__ = ["Adaptive"]

Array = npt.NDArray[np.float64]
_POOL = 4096
# Fewer do not determine a polynomial.
_LEAST_KNOWN = 10


class Adaptive:
    """Thins out a Sobol sequence: the rest has a density between `uniform` and a bound, times the uniform one.

    Parameters
    ----------
    space : Space
        The job's parameters.
    seed : int
        Determines all draws, together with the observations.
    keys : AdaptiveKeys
        `parameters.adaptive`.
    """

    def __init__(self, space: Space, seed: int, keys: AdaptiveKeys) -> None:
        self._space, self._keys = space, keys
        self._seed, self._sobol = seed, _sobol(len(space), seed)
        self._random = np.random.default_rng(seed)
        self._observed = Observed(len(space), keys.window)
        self._density: Callable[[Array], Array] | None = None  # fitted to all observations
        self._drawn = 0

    def observe(self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array]) -> None:
        """Process observed simulations, shape (n,), (n, number of parameters): their `difficulty`.

        Raises
        ------
        ValueError
            A loss is negative, so that it has no logarithm.
        """
        for simulation, last in zip(simulations, losses["last"], strict=True):
            if last < 0:
                why = f"simulation {simulation} has the loss {last:.4g}"
                raise ValueError(f"'adaptive' needs losses of 0 or more, and {why}. Pass stream.losses a squared error")
        self._observed.add(simulations, self._space.unit(parameters), losses["difficulty"])
        self._density = None

    def sample(self, count: int) -> tuple[Array, list[str], list[int], Array]:
        """Draw `count` rows, shape (count, number of parameters), with their rules, and weights; none has a parent."""
        learned = len(self._observed) >= _LEAST_KNOWN
        rules = ["adaptive" if learned and self._drawn + i >= self._keys.start else "sobol" for i in range(count)]
        points = np.concatenate([self._next(rule == "adaptive") for rule in rules])
        self._drawn += count
        thinned = np.array(rules) == "adaptive"
        weights = np.where(thinned, 1 / self.density(points), 1.0) if thinned.any() else np.ones(count)
        return self._space.scale(points), rules, [-1] * count, weights

    def _next(self, thinned: bool) -> Array:
        """Return the next point of the sequence, shape (1, d), that is not skipped."""
        while True:
            point: Array = self._sobol.random(1)
            if not thinned or self._random.random() * self._bound < self.density(point)[0]:
                return point

    @property
    def _bound(self) -> float:
        return self._keys.uniform + (1 - self._keys.uniform) * self._keys.bound

    def density(self, points: Array) -> Array:
        """Return the density at points of the cube, shape (n, d), relative to the uniform one, shape (n,).

        Notes
        -----
        A part `uniform` of it is uniform. The rest is tilted exponentially, by exp(`sharpness` * difficulty), up to
        `bound`; its mean is taken over 4,096 points of the cube.
        """
        if self._density is None:
            self._density = self._tilted()
        return self._keys.uniform + (1 - self._keys.uniform) * self._density(points)

    def _tilted(self) -> Callable[[Array], Array]:
        keys, observed = self._keys, self._observed
        difficulty = fit(observed.points, observed.values, observed.ids.astype(np.float64))
        tilt = keys.sharpness * difficulty(np.random.default_rng(0).random((_POOL, len(self._space))))
        scale = _scale(tilt, np.log(keys.bound))
        return lambda points: np.exp(np.minimum(np.log(keys.bound), scale + keys.sharpness * difficulty(points)))

    def skip(self, parameters: Array) -> None:
        """Continue after rows that were drawn after the state; shape (n, number of parameters)."""
        farthest = int(100 * self._bound)  # one in `_bound` points is drawn
        for row in parameters:
            passed = self._sobol.num_generated
            if not any((self._space.scale(self._sobol.random(1)) == row).all() for _ in range(farthest)):
                self._go_to(passed)  # somebody has changed the row
        self._drawn += len(parameters)

    def _go_to(self, passed: int) -> None:
        self._sobol = _sobol(len(self._space), self._seed)
        if passed:
            self._sobol.fast_forward(passed)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes."""
        state = {"random": self._random.bit_generator.state, "seed": self._seed, "passed": self._sobol.num_generated}
        return state | {"drawn": self._drawn, "observed": self._observed.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state as if there had been no interruption."""
        self._random.bit_generator.state = state["random"]
        self._seed = state["seed"]
        self._go_to(state["passed"])
        self._drawn, self._density = state["drawn"], None
        self._observed.load_state_dict(state["observed"])


def _sobol(dimensions: int, seed: int) -> Any:
    from scipy.stats import qmc  # takes a second, and the other samplers do not need it

    return qmc.Sobol(dimensions, seed=seed)


def _scale(tilt: Array, most: float) -> float:
    """Find s so that exp(min(most, s + tilt)) has the mean 1; it grows with s, from less than that to exp(most)."""
    low, high = -tilt.max(), most - tilt.min()
    for _ in range(60):  # to the precision of float64
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(np.minimum(most, middle + tilt)).mean() < 1 else (low, middle)
    return float(middle)
