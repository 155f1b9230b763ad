"""The simulations that a training gets and their difficulty, for the page that explains why samplers win or lose."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from problem import Equation, solve
from surrogate import Training

_QUARTERS, _BINS = 4, 10


class Watch:
    """The batches of a training, by quarter."""

    def __init__(self, equation: Equation, batches: int) -> None:
        self._equation, self._batches = equation, batches
        self._axis = next(iter(equation.space.values()))
        self._newest, self._steps = 0, 0
        self._ages: list[list[float]] = [[] for _ in range(_QUARTERS)]
        self._trained = np.zeros((_QUARTERS, _BINS), int)
        self._simulations: dict[int, torch.Tensor] = {}

    def batch(self, simulations: torch.Tensor, parameters: torch.Tensor) -> None:
        """Record the ids [B] of a batch's simulations and their parameters [B, p]."""
        quarter = min(_QUARTERS - 1, _QUARTERS * self._steps // self._batches)
        self._newest, self._steps = max(self._newest, int(simulations.max())), self._steps + 1
        self._ages[quarter].append(float(self._newest - simulations.double().mean()))
        self._trained[quarter] += np.histogram(parameters[:, 0].numpy(), _BINS, self._axis)[0]
        self._simulations.update(zip(simulations.tolist(), parameters, strict=True))

    def result(self, training: Training) -> dict[str, Any]:
        """Return what was recorded, with the final error of the model in each simulation used for training."""
        ids = sorted(self._simulations)
        parameters = torch.stack([self._simulations[number] for number in ids])
        truth = np.stack(list(solve(self._equation, parameters.numpy())), axis=1)
        errors = training.errors(parameters, torch.from_numpy(truth))
        return {
            "ages": [float(np.mean(ages)) for ages in self._ages if ages],
            "trained": self._trained.tolist(),
            "errors": dict(zip(ids, errors.tolist(), strict=True)),
        }
