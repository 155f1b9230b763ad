"""The surrogate, its training on windows of three steps, and its errors: the same for all arms.

From u at one step and one parameter to u at the next, by four periodic convolutions, with Adam. It is trained to make
two steps, the second from its own first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from problem import POINTS, STEPS, Equation, held_out
from torch import nn

BATCH, WINDOW = 32, 3
_WIDTH, _KERNEL, _RATE = 24, 5, 2e-3


class Training:
    """A model, trained for a number of batches that is known before: the rate goes down to 0 along half a cosine."""

    def __init__(self, equation: Equation, seed: int, batches: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)

        def layer(inputs: int, outputs: int) -> nn.Module:
            return nn.Conv1d(inputs, outputs, _KERNEL, padding="same", padding_mode="circular")

        layers = [layer(2, _WIDTH), nn.GELU(), layer(_WIDTH, _WIDTH), nn.GELU(), layer(_WIDTH, _WIDTH), nn.GELU()]
        self._model = nn.Sequential(*layers, layer(_WIDTH, 1))
        self._equation, self._batches = equation, batches
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=_RATE)
        self.steps = 0

    def step(self, parameters: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """Train with a batch: parameters [B, p], u [B, 3, 128]. Returns the loss of each window, [B]."""
        seen, now = self._seen(parameters), u[:, 0]
        losses = torch.zeros(len(u))
        for i in range(1, WINDOW):
            now = self._next(seen, now)
            losses = losses + (now - u[:, i]).square().mean(1)
        self._optimizer.param_groups[0]["lr"] = _RATE * (1 + math.cos(math.pi * min(1, self.steps / self._batches))) / 2
        self._optimizer.zero_grad()
        losses.mean().backward()
        self._optimizer.step()
        self.steps += 1
        return losses.detach()

    def result(self, simulations: int) -> dict[str, Any]:
        """Errors on held-out simulations of which only the start is given: their mean, p99, greatest, and quantiles."""
        parameters, truth = held_out(self._equation, simulations)
        errors = self._errors(torch.from_numpy(parameters), torch.from_numpy(truth)).numpy()
        quantities = {"mean": errors.mean(), "p99": np.quantile(errors, 0.99), "max": errors.max()}
        quantiles = np.quantile(errors, np.linspace(0, 1, 101))
        return {name: float(x) for name, x in quantities.items()} | {
            "steps": self.steps,
            "quantiles": [float(f"{x:.4g}") for x in quantiles],
        }

    def _seen(self, parameters: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._equation.seen(parameters.numpy())).float()

    def _next(self, seen: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        inputs = torch.stack([u, seen.expand(-1, POINTS)], dim=1)
        return u + 0.1 * self._model(inputs)[:, 0]

    def _errors(self, parameters: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Root mean square error of each simulation over its steps and points."""
        seen, now = self._seen(parameters), truth[:, 0]
        squares = torch.zeros(len(truth))
        with torch.no_grad():
            for i in range(1, STEPS + 1):
                now = self._next(seen, now).clamp(-10, 10)  # one that diverges is wrong, not infinite
                squares += (now - truth[:, i]).square().mean(1)
        return (squares / STEPS).sqrt()
