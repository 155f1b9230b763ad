"""The surrogate, its training and its errors, which are the same for all arms.

It maps the parameters and the time to all temperatures at once, with three layers of 256, trained by Adam. This is the
direct surrogate of the SC 2023 study, which also halves the learning rate at intervals.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from problem import HIGH, LOW, POINTS, STEP_TIME, STEPS, held_out
from torch import nn

from experiments.errors import quantities

BATCH = 16
_RATE, _HALVED_EVERY, _LEAST_RATE = 1e-3, 5000, 1.25e-4
_RISING = 0.1
_EVERY = 5  # steps of a held-out simulation that are compared


class Training:
    """A model, and its progress at some moments.

    Parameters
    ----------
    seed : int
        Seed of the model's weights.
    marks : int
        Training steps between marks.
    seconds : float
        Time that has already passed.
    steps : int, optional
        Number of training steps: the learning rate rises over the first tenth, then decreases to 0 along half a cosine.
        If not given, the rate is halved at intervals.
    """

    def __init__(self, seed: int, marks: int, seconds: float = 0.0, steps: int | None = None) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        layers = [nn.Linear(7, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU()]
        self.model = nn.Sequential(*layers, nn.Linear(256, POINTS * POINTS))
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=_RATE, fused=True)
        self._loss = nn.MSELoss()
        self._low = torch.tensor([*LOW, 0.0], dtype=torch.float32)
        self._high = torch.tensor([*HIGH, STEPS * STEP_TIME], dtype=torch.float32)
        self._begun, self._marks, self._all = time.perf_counter() - seconds, marks, steps
        self.steps = 0
        self._marked: list[tuple[int, float, dict[str, torch.Tensor]]] = []

    def step(self, parameters: torch.Tensor, times: torch.Tensor, fields: torch.Tensor) -> None:
        """Train with a batch: parameters [B, 6], times [B], temperatures [B, 32, 32]."""
        loss = self._loss(self.model(self._inputs(parameters, times)), (fields.flatten(1) - 300) / 100)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.steps += 1
        self._optimizer.param_groups[0]["lr"] = self._rate()
        if self.steps % self._marks == 0:
            self._mark()

    def result(self, simulations: int) -> dict[str, Any]:
        """Return the errors of the model at each mark and at the end, on held-out simulations."""
        if not self._marked or self._marked[-1][0] != self.steps:
            self._mark()
        parameters, truth = held_out(simulations, _EVERY)
        found = []
        for steps, seconds, state in self._marked:
            self.model.load_state_dict(state)
            errors = self._errors(parameters, truth)
            found.append({"steps": steps, "seconds": round(seconds, 2)} | quantities(errors))
        return {"marks": found}

    def _rate(self) -> float:
        if self._all is None:
            return max(_LEAST_RATE, _RATE * 0.5 ** (self.steps // _HALVED_EVERY))
        part = self.steps / self._all
        return _RATE * min(1.0, part / _RISING) * (1 + math.cos(math.pi * min(1.0, part))) / 2

    def _mark(self) -> None:
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        self._marked.append((self.steps, time.perf_counter() - self._begun, state))

    def _inputs(self, parameters: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        values = torch.cat([parameters, times[:, None]], dim=1).float()
        return 2 * (values - self._low) / (self._high - self._low) - 1

    def _errors(self, parameters: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the root mean square error of each simulation over its steps and points, in kelvin."""
        squares = np.zeros(len(parameters))
        known = torch.from_numpy(parameters)
        with torch.no_grad():
            for i in range(truth.shape[1]):
                times = torch.full((len(parameters),), (i + 1) * _EVERY * STEP_TIME)
                predicted = 300 + 100 * self.model(self._inputs(known, times)).numpy()
                squares += np.square(predicted - truth[:, i].reshape(len(parameters), -1)).mean(axis=1)
        return np.sqrt(squares / truth.shape[1])
