"""The parameters of a model, divided into the servers' parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from mpidata.servers.flat_weights import Kind, kinds_of, size_of, stretches

__all__ = ["Weights"]


class _Place(NamedTuple):
    """The place of a part of a parameter."""

    parameter: torch.nn.Parameter
    within: slice
    weights: torch.Tensor
    gradients: torch.Tensor


class Weights:
    """Copies gradients to the parts, and weights from them.

    Parameters
    ----------
    parameters : sequence of torch.nn.Parameter
        The parameters, in CPU memory, in the same order on all trainers.
    servers : int
        Number of servers.

    Attributes
    ----------
    parameters : list of torch.nn.Parameter
    kinds : list of Kind
        Kinds of weights that the servers keep.
    parts, gradients : list of ndarray
        The bytes of each server's part: of the weights, and of their gradients.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], servers: int) -> None:
        self.kinds = kinds_of(parameters)
        self.parameters = list(parameters)
        dealt = stretches(self.kinds, servers)
        weights, gradients = ([torch.zeros(size_of(part), dtype=torch.uint8) for part in dealt] for _ in range(2))
        self.parts, self.gradients = [part.numpy() for part in weights], [part.numpy() for part in gradients]
        self._places = [
            place
            for i, kind in enumerate(self.kinds)
            for part, own, pushed in zip(dealt, weights, gradients, strict=True)
            for place in self._find(kind, part[i].first, part[i].last, part[i].of(own), part[i].of(pushed))
        ]

    def _find(
        self, kind: Kind, first: int, last: int, weights: torch.Tensor, gradients: torch.Tensor
    ) -> Iterator[_Place]:
        begin = 0
        for parameter in self.parameters:
            if parameter.dtype != kind.dtype:
                continue
            end = begin + parameter.numel()
            low, high = max(first, begin), min(last, end)
            if low < high:
                at = slice(low - first, high - first)
                yield _Place(parameter, slice(low - begin, high - begin), weights[at], gradients[at])
            begin = end

    def state(self) -> list[torch.Tensor]:
        """Return a copy of all weights, by dtype."""
        return [
            torch.cat([one.detach().reshape(-1) for one in self.parameters if one.dtype == kind.dtype])
            for kind in self.kinds
        ]

    def take_gradients(self) -> None:
        """Copy the gradients to `gradients`; a missing one counts as 0."""
        for place in self._places:
            gradient: Any = place.parameter.grad
            if gradient is None:
                place.gradients.zero_()
            else:
                place.gradients.copy_(gradient.reshape(-1)[place.within])

    def give(self) -> None:
        """Copy the values in `parts` to the parameters."""
        with torch.no_grad():
            for place in self._places:
                parameter = place.parameter
                if parameter.is_contiguous():
                    parameter.view(-1)[place.within].copy_(place.weights)
                else:
                    flat = parameter.reshape(-1)
                    flat[place.within] = place.weights
                    parameter.copy_(flat.view(parameter.shape))
