"""Fields that are put once per simulation, on the mates: sent with the first batch that needs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import torch

from mpidata.trainer.constants import HeldConstants, find_constants
from mpidata.trainer.trainer import Trainer

__all__ = ["Constants", "FirstConstants", "MateConstants"]

Constants = dict[str, torch.Tensor]
_T = TypeVar("_T")
_KEPT = 64
"""Number of simulations whose constants a mate keeps, or as many as a batch has; the first rank keeps track."""


class _Kept(Generic[_T]):
    """The constants of the simulations of the latest batches."""

    def __init__(self) -> None:
        self.of: OrderedDict[int, _T] = OrderedDict()

    def use(self, simulation: int, value: _T) -> None:
        self.of[simulation] = value
        self.of.move_to_end(simulation)

    def drop_old(self, most: int) -> None:
        while len(self.of) > max(_KEPT, most):
            self.of.popitem(last=False)


class FirstConstants:
    """Keeps track of the constants that the mates have; parameters as in `find_constants`."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._kept: _Kept[HeldConstants] = _Kept()

    def lacking(self, simulations: Iterable[int]) -> dict[int, Constants]:
        """Return the constants of a batch's simulations that the mates lack; they have them from then on."""
        several, found = dict.fromkeys(simulations), dict[int, Constants]()
        for simulation in several:
            held, before = find_constants(self._trainer, simulation), self._kept.of.get(simulation)
            if held is None:
                continue
            if before is None or before.address != held.address:  # or from another try
                found[simulation] = held.tensors()
                before = held
            self._kept.use(simulation, before)
        self._kept.drop_old(len(several))
        return found


class MateConstants:
    """The constants that a mate has."""

    def __init__(self) -> None:
        self._kept: _Kept[Constants] = _Kept()
        self._of_validation: dict[int, Constants] = {}

    def take(self, simulations: Iterable[int], came: Mapping[int, Constants]) -> None:
        """Take the constants that came with a batch of these simulations."""
        several = dict.fromkeys(simulations)
        for simulation in several:
            if (held := came.get(simulation) or self._kept.of.get(simulation)) is not None:
                self._kept.use(simulation, held)
        self._kept.drop_old(len(several))

    def hold(self, of_validation: Mapping[int, Constants]) -> None:
        """Keep the constants of validation simulations."""
        self._of_validation |= of_validation

    def find(self, simulation: int) -> Constants | None:
        """Return the constants of a simulation."""
        return self._kept.of.get(simulation) or self._of_validation.get(simulation)
