"""The samplers of the arms: all start with the same uniform simulations, and report the time the sampler took."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from mpidata.config.parameters import AdaptiveKeys, BreedKeys, PowerKeys
from mpidata.sampling.samplers.adaptive import Adaptive
from mpidata.sampling.samplers.breed import Breed
from mpidata.sampling.samplers.power import Power
from mpidata.sampling.space import Space

FIRST = 50
OTHERS = ("pace",)  # parameters of the job that do not belong to the equation
PUBLISHED = ("committee",)  # samplers that receive the model
Array = npt.NDArray[np.float64]


class Arm:
    """The sampler that the environment variable `EXPERIMENT_ARM` describes, after the first uniform simulations.

    Its value is JSON: `{"sampler": "adaptive", "keys": {...}, "weighted": false, "equation": "burgers", "times":
    "FILE"}`. FILE receives the CPU seconds. With `weighted`, simulations have the sampler's weights, else 1.
    """

    def __init__(self, space: dict[str, Any], seed: int) -> None:
        given = json.loads(os.environ["EXPERIMENT_ARM"])
        drawn = [(name, axis) for name, axis in space.items() if name not in OTHERS]
        self._columns = [list(space).index(name) for name, _ in drawn]
        self._row = np.array([axis["value"] if isinstance(axis, dict) else 1.0 for axis in space.values()])
        self._weighted = given["weighted"]
        axes = Space([tuple(axis) for _, axis in drawn])
        self._first = axes.scale(np.random.default_rng(seed).random((FIRST, len(axes))))
        self._sampler = _make(given, axes, seed)
        self._times, self._seconds, self._drawn = Path(given["times"]), 0.0, 0

    def sample(self, count: int) -> tuple[Array, list[str], list[int], Array]:
        """Draw rows: the rest of the first uniform ones, then the sampler's."""
        first = self._first[self._drawn : self._drawn + count]
        self._drawn += count
        rows, rules, parents = first, ["first"] * len(first), [-1] * len(first)
        table, weights = np.tile(self._row, (count, 1)), np.ones(count)
        if more := count - len(first):
            drawn, its_rules, its_parents, *its_weights = self._timed(lambda: self._sampler.sample(more))
            rows, rules, parents = np.concatenate([rows, drawn]), rules + its_rules, parents + its_parents
            if self._weighted:
                weights[len(first) :] = its_weights[0]
        table[:, self._columns] = rows
        return table, rules, parents, weights

    def observe(self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array]) -> None:
        """Pass losses to the sampler."""
        if hasattr(self._sampler, "observe"):
            self._timed(lambda: self._sampler.observe(simulations, parameters[:, self._columns], losses))
        self._times.write_text(f"{self._seconds:.3f}")

    def _timed(self, call: Any) -> Any:
        begun = time.thread_time()
        result = call()
        self._seconds += time.thread_time() - begun
        return result


class PublishedArm(Arm):
    """An arm whose sampler receives the published model instead of losses."""

    def observe(
        self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array], published: Any = None
    ) -> None:
        """Pass the model to the sampler."""
        self._timed(lambda: self._sampler.observe(published))
        self._times.write_text(f"{self._seconds:.3f}")


class _Even:
    """Points that do not depend on losses."""

    def __init__(self, space: Space, draw: Any, rule: str) -> None:
        self._space, self._draw, self._rule = space, draw, rule

    def sample(self, count: int) -> tuple[Array, list[str], list[int]]:
        return self._space.scale(self._draw(count)), [self._rule] * count, [-1] * count


def _make(given: dict[str, Any], space: Space, seed: int) -> Any:
    name = given["sampler"]
    if name == "uniform":
        random = np.random.default_rng([seed, 1])
        return _Even(space, lambda count: random.random((count, len(space))), name)
    if name == "sobol":
        return _Even(space, qmc.Sobol(len(space), seed=seed).random, name)
    if name == "adaptive":
        return Adaptive(space, seed, AdaptiveKeys(**given["keys"]))
    if name == "breed":
        return Breed(space, seed, BreedKeys(**given["keys"]))
    if name == "power":
        return Power(space, seed, PowerKeys(**given["keys"]))
    if name == "diffusion":
        from diffusion import Diffusion

        return Diffusion(space, seed, **given["keys"])
    from committee import Committee

    return Committee(space, seed, given["equation"], **given["keys"])
