"""Simulations on which two checkpoints of the model disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from problem import EQUATIONS
from surrogate import forward, network, told_of

from mpidata.sampling.space import Space

__all__ = ["Committee"]

Array = npt.NDArray[np.float64]
_POOL, _CHOSEN, _STEPS = 128, 16, 20


class Committee:
    """Chooses from a pool where the model's two newest published versions disagree, and far from each other.

    After AL4PDE (Musekamp et al., Active Learning for Neural PDE Solvers, ICLR 2025): stochastic batches, with
    probabilities in proportion to the disagreement, here times the squared distance to the points chosen before (Arthur
    and Vassilvitskii, k-means++, SODA 2007). A part `uniform` of the simulations is independent and uniform.
    """

    def __init__(self, space: Space, seed: int, equation: str, uniform: float = 0.3) -> None:
        torch.set_num_threads(1)
        self._space, self._uniform = space, uniform
        self._equation = EQUATIONS[equation]
        self._random = np.random.default_rng([seed, 2])
        self._members = [network(self._equation) for _ in range(2)]
        self._versions: list[int] = []
        self._chosen: list[Array] = []

    def observe(self, published: Any) -> None:
        """Take the model's last published version, or None."""
        if published is None or published.version in self._versions:
            return
        self._versions = [*self._versions, published.version][-2:]
        self._members.reverse()
        self._members[-1].load_state_dict({name: torch.as_tensor(array.copy()) for name, array in published.items()})

    def sample(self, count: int) -> tuple[Array, list[str], list[int]]:
        """Draw `count` rows."""
        rules = np.where(self._random.random(count) < self._uniform, "uniform", "committee").tolist()
        if len(self._versions) < 2:
            rules = ["uniform"] * count
        points = np.stack([self._next() if rule == "committee" else self._anywhere(1)[0] for rule in rules])
        return self._space.scale(points), rules, [-1] * count

    def _anywhere(self, count: int) -> Array:
        return self._random.random((count, len(self._space)))

    def _next(self) -> Array:
        if not self._chosen:
            self._chosen = self._batch(self._anywhere(_POOL))
        return self._chosen.pop()

    def _batch(self, pool: Array) -> list[Array]:
        weights, chosen = self._disagreement(pool), [0] * 0
        far = np.ones(len(pool))
        for _ in range(_CHOSEN):
            likely = weights * far
            if not likely.sum() > 0:
                likely = np.ones(len(pool))
            chosen.append(int(self._random.choice(len(pool), p=likely / likely.sum())))
            apart = ((pool - pool[chosen[-1]]) ** 2).sum(axis=1)
            far = apart if len(chosen) == 1 else np.minimum(far, apart)
        return [pool[i] for i in chosen]

    def _disagreement(self, pool: Array) -> Array:
        """Return the mean square difference of both versions over the first half of a simulation, [n]."""
        parameters = self._space.scale(pool)
        seen = told_of(self._equation, torch.from_numpy(parameters))
        states = [torch.from_numpy(self._equation.initial(parameters)).float()] * 2
        squares = torch.zeros(len(pool))
        with torch.no_grad():
            for _ in range(_STEPS):
                pairs = zip(self._members, states, strict=True)
                states = [forward(member, seen, u).clamp(-10, 10) for member, u in pairs]
                squares += (states[0] - states[1]).square().mean((1, 2))
        return squares.double().numpy()
