"""A part of the weights, and the optimizer that steps it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from mpidata.servers.flat_weights import Kind, size_of, stretches
from mpidata.servers.table import SPARSE, Rows, Table, read_gradients

__all__ = ["ELEMENTWISE", "Making", "Part", "State", "cut", "join"]

ELEMENTWISE = frozenset(
    getattr(torch.optim, name)
    for name in "ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD".split()
)
"""The optimizers that step each weight separately, so that a step of a part equals a step of all weights."""

State = dict[str, list[Any]]
"""`weights`: by dtype, then the rows of each table, None: to be drawn; `optimizer`: its state of each, by name."""


@dataclasses.dataclass(frozen=True)
class Making:
    """The weights that the servers store, and how they step them."""

    kinds: Sequence[Kind]
    optimizer: type[torch.optim.Optimizer]
    settings: Mapping[str, Any]
    staleness: int
    tables: Sequence[Rows] = ()
    place: int = 0  # bytes after each push for server 0: the trainer's position, which the others need

    def make_sparse(self, rows: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """Create the optimizer of rows of which each step changes some."""
        return SPARSE[self.optimizer][0](rows, **self.settings)

    def slices(self, servers: int) -> list[list[slice]]:
        """Return, for each server, its slice of the weights of each dtype, then of the rows of each table."""
        bounds = [table.bounds(servers) for table in self.tables]
        return [
            [slice(stretch.first, stretch.last) for stretch in part] + [slice(*of[i : i + 2]) for of in bounds]
            for i, part in enumerate(stretches(self.kinds, servers))
        ]


class Part:
    """The part of one server.

    Parameters
    ----------
    making : Making
    server, servers : int
        Number of the server, and of all servers.
    state : State
        Of this part.

    Attributes
    ----------
    bytes : torch.Tensor
        The weights, as uint8.
    tables : list of Table
    """

    def __init__(self, making: Making, server: int, servers: int, state: State) -> None:
        self._stretches = stretches(making.kinds, servers)[server]
        self.bytes = torch.zeros(size_of(self._stretches), dtype=torch.uint8)
        self._weights = [torch.nn.Parameter(stretch.of(self.bytes)) for stretch in self._stretches]
        self._optimizer = making.optimizer(self._weights or [torch.nn.Parameter(torch.zeros(0))], **making.settings)
        every = list(zip(state["weights"], state["optimizer"], strict=True))
        for weights, (given, kept) in zip(self._weights, every[: len(self._weights)], strict=True):
            weights.detach().copy_(given)
            if kept:
                self._optimizer.state[weights] = dict(kept)
        self.tables = [
            Table(rows, making.make_sparse, server, servers, given, kept)
            for rows, (given, kept) in zip(making.tables, every[len(self._weights) :], strict=True)
        ]
        self._dims = [rows.dim for rows in making.tables]

    def step(self, pushes: Sequence[torch.Tensor]) -> None:
        """Make a step with the mean of some pushes, each the gradients of this part as bytes, then those of rows."""
        for weights, stretch in zip(self._weights, self._stretches, strict=True):
            first, *others = (stretch.of(push) for push in pushes)
            total = first.clone() if others else first
            for other in others:
                total += other
            weights.grad = total.div_(len(pushes)) if others else total
        self._optimizer.step()
        for weights in self._weights:
            weights.grad = None
        if self.tables:
            behind = [read_gradients(push[len(self.bytes) :].numpy(), self._dims) for push in pushes]
            for table, gradients in zip(self.tables, zip(*behind, strict=True), strict=True):
                table.step(gradients)

    def state(self) -> State:
        """Return the state of this part."""
        every = [(weights.detach(), dict(self._optimizer.state[weights])) for weights in self._weights]
        every += [table.state() for table in self.tables]
        return copy.deepcopy({"weights": [given for given, _ in every], "optimizer": [kept for _, kept in every]})


def cut(state: State, making: Making, servers: int) -> list[State]:
    """Divide the state of all weights among the servers."""
    parts: list[State] = []
    for within in making.slices(servers):
        every = list(zip(state["weights"], state["optimizer"], within, strict=True))
        weights = [None if given is None else given[place].clone() for given, _, place in every]
        kept = [
            {name: value[place].clone() if _is_by_weight(value) else copy.deepcopy(value) for name, value in of.items()}
            for _, of, place in every
        ]
        parts.append({"weights": weights, "optimizer": kept})
    return parts


def join(parts: Sequence[State]) -> State:
    """Return the state of all weights from those of all parts."""
    weights = [torch.cat(of) for of in zip(*(part["weights"] for part in parts), strict=True)]
    kept = []
    for of in zip(*(part["optimizer"] for part in parts), strict=True):
        values = {name: [one[name] for one in of] for name in of[0]}
        kept.append({name: torch.cat(these) if _is_by_weight(these[0]) else these[0] for name, these in values.items()})
    return {"weights": weights, "optimizer": kept}


def _is_by_weight(value: Any) -> bool:
    """Whether an optimizer keeps this value for each weight; otherwise for all, such as the number of steps."""
    return isinstance(value, torch.Tensor) and value.dim() > 0
