"""A part of the weights, and the optimizer that steps it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from mpidata.servers.flat import Kind, size_of, stretches

__all__ = ["ELEMENTWISE", "Making", "Part", "State", "cut", "join"]

ELEMENTWISE = frozenset(
    getattr(torch.optim, name)
    for name in "ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD".split()
)
"""The optimizers that step each weight by itself, so that they step a part as they would step all."""

State = dict[str, list[Any]]
"""`weights`: by dtype; `optimizer`: likewise, what it keeps of them, by name."""


@dataclasses.dataclass(frozen=True)
class Making:
    """What the servers are to keep, and how they step it."""

    kinds: Sequence[Kind]
    optimizer: type[torch.optim.Optimizer]
    settings: Mapping[str, Any]
    staleness: int


class Part:
    """What one server keeps.

    Parameters
    ----------
    making : Making
    server, servers : int
        Which one of how many.
    state : State
        Of this part.

    Attributes
    ----------
    bytes : torch.Tensor
        The weights, as uint8.
    """

    def __init__(self, making: Making, server: int, servers: int, state: State) -> None:
        self._stretches = stretches(making.kinds, servers)[server]
        self.bytes = torch.zeros(size_of(self._stretches), dtype=torch.uint8)
        self._weights = [torch.nn.Parameter(stretch.of(self.bytes)) for stretch in self._stretches]
        self._optimizer = making.optimizer(self._weights, **making.settings)
        with torch.no_grad():
            for weights, given in zip(self._weights, state["weights"], strict=True):
                weights.copy_(given)
        for weights, kept in zip(self._weights, state["optimizer"], strict=True):
            if kept:
                self._optimizer.state[weights] = dict(kept)

    def step(self, gradients: Sequence[torch.Tensor]) -> None:
        """Make a step by the mean of some gradients, each as the bytes of this part."""
        for weights, stretch in zip(self._weights, self._stretches, strict=True):
            first, *others = (stretch.of(gradient) for gradient in gradients)
            total = first.clone() if others else first
            for other in others:
                total += other
            weights.grad = total.div_(len(gradients)) if others else total
        self._optimizer.step()
        for weights in self._weights:
            weights.grad = None

    def state(self) -> State:
        """Give the state of this part."""
        kept = [dict(self._optimizer.state[weights]) for weights in self._weights]
        return copy.deepcopy({"weights": [weights.detach() for weights in self._weights], "optimizer": kept})


def cut(state: State, kinds: Sequence[Kind], servers: int) -> list[State]:
    """Deal the state of all weights out to so many servers."""
    parts = []
    for part in stretches(kinds, servers):
        within = [slice(stretch.first, stretch.last) for stretch in part]
        weights = [of[place].clone() for of, place in zip(state["weights"], within, strict=True)]
        kept = [
            {name: value[place].clone() if _is_by_weight(value) else copy.deepcopy(value) for name, value in of.items()}
            for of, place in zip(state["optimizer"], within, strict=True)
        ]
        parts.append({"weights": weights, "optimizer": kept})
    return parts


def join(parts: Sequence[State]) -> State:
    """Put the states of all parts together."""
    weights = [torch.cat(of) for of in zip(*(part["weights"] for part in parts), strict=True)]
    kept = []
    for of in zip(*(part["optimizer"] for part in parts), strict=True):
        names = of[0]
        values = {name: [one[name] for one in of] for name in names}
        kept.append({name: torch.cat(these) if _is_by_weight(these[0]) else these[0] for name, these in values.items()})
    return {"weights": weights, "optimizer": kept}


def _is_by_weight(value: Any) -> bool:
    """Whether an optimizer keeps this of each weight; else it is of all, such as the number of steps."""
    return isinstance(value, torch.Tensor) and value.dim() == 1
