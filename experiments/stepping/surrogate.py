"""The surrogate, its training on windows of three steps, and its errors, which are the same for all arms.

It maps u at one step and one or two parameters to u at the next, with four periodic convolutions of growing dilation,
trained by Adam.
It is trained to make two steps, the second from the output of the first. The first starts from a state with a little
noise, without which it would not stay near the solution for 40 steps (Sanchez-Gonzalez et al., Learning to Simulate
Complex Physics with Graph Networks, ICML 2020, section 4.3).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from problem import POINTS, STEPS, Equation, held_out
from torch import nn
from torch.optim.swa_utils import AveragedModel

from experiments.errors import quantities

BATCH, WINDOW = 32, 3
_WIDTH, _KERNEL, _DILATIONS, _RATE, _NOISE = 24, 5, (1, 2, 4, 8), 2e-3, 0.02
_AVERAGED = 0.2  # the part at the end of training over which weights are averaged
_FEW = 50  # simulations at a time, so that they fit into a cache


def network(equation: Equation) -> nn.Sequential:
    """Return the surrogate, which `forward` uses."""
    layers: list[nn.Module] = []
    for inputs, dilation in zip((equation.fields + equation.told, _WIDTH, _WIDTH, _WIDTH), _DILATIONS, strict=True):
        outputs = equation.fields if dilation == _DILATIONS[-1] else _WIDTH
        more = {"padding": "same", "padding_mode": "circular", "dilation": dilation}
        layers += [nn.Conv1d(inputs, outputs, _KERNEL, **more), nn.GELU()]
    return nn.Sequential(*layers[:-1])


def forward(model: nn.Module, seen: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Make a step from the inputs for the parameters, [n, told], and u [n, fields, 128]."""
    step: torch.Tensor = u + 0.1 * model(torch.cat([u, seen[:, :, None].expand(-1, -1, POINTS)], dim=1))
    return step


def told_of(equation: Equation, parameters: torch.Tensor) -> torch.Tensor:
    """Return the surrogate's inputs for parameters [n, p]: [n, told]."""
    return torch.from_numpy(equation.seen(parameters.numpy())).float()


class Training:
    """A model trained for a known number of batches: the learning rate decreases to 0 along half a cosine."""

    def __init__(self, equation: Equation, seed: int, batches: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.model = network(equation)
        self._average = AveragedModel(self.model)
        self._equation, self._batches = equation, batches
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=_RATE)
        self.steps = 0

    def step(self, parameters: torch.Tensor, u: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Train with a batch: parameters [B, p], u [B, 3, fields, 128], weights [B]. Return the losses, [B]."""
        seen, now = told_of(self._equation, parameters), u[:, 0] + _NOISE * torch.randn(u[:, 0].shape)
        losses = torch.zeros(len(u))
        for i in range(1, WINDOW):
            now = forward(self.model, seen, now)
            losses = losses + (now - u[:, i]).square().mean((1, 2))
        self._optimizer.param_groups[0]["lr"] = _RATE * (1 + math.cos(math.pi * min(1, self.steps / self._batches))) / 2
        self._optimizer.zero_grad()
        (losses * weights).mean().backward()
        self._optimizer.step()
        self.steps += 1
        if self.steps > (1 - _AVERAGED) * self._batches:
            self._average.update_parameters(self.model)
        return losses.detach()

    def result(self, simulations: int) -> dict[str, Any]:
        """Return the errors on held-out simulations, with the averaged weights and with the last ones."""
        parameters, truth = (torch.from_numpy(array) for array in held_out(self._equation, simulations))
        errors = {name: self.errors(parameters, truth, name == "average").numpy() for name in ("average", "last")}
        return quantities(errors["average"]) | {"last": quantities(errors["last"]), "steps": self.steps}

    def errors(self, parameters: torch.Tensor, truth: torch.Tensor, average: bool = True) -> torch.Tensor:
        """Return the root mean square error of each simulation over its steps and points, [n], from the start alone.

        Parameters [n, p], truth [n, 41, fields, 128].
        """
        model = self._average.module if average else self.model
        found = []
        for seen, u in zip(told_of(self._equation, parameters).split(_FEW), truth.split(_FEW), strict=True):
            now, squares = u[:, 0], torch.zeros(len(u))
            with torch.no_grad():
                for i in range(1, STEPS + 1):
                    now = forward(model, seen, now).clamp(-10, 10)  # divergence is wrong, not infinite
                    squares += (now - u[:, i]).square().mean((1, 2))
            found.append((squares / STEPS).sqrt())
        return torch.cat(found)
