"""Passes over the stream on the ranks of a replica: the first rank draws for all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from mpidata.errors import MpidataError
from mpidata.trainer.constants import find_constants
from mpidata.trainer.passes import Pass
from mpidata.trainer.replica.first_rank import FirstTrainer
from mpidata.trainer.replica.mate import MateTrainer
from mpidata.trainer.trainer import Trainer

__all__ = ["constants_of", "pass_of"]


def pass_of(trainer: Trainer, pinned: bool, gathers: bool) -> Callable[..., Pass]:
    """Return a callable that makes the passes of a trainer.

    With `pinned` a mate's batches are in page-locked memory; with `gathers` batches have constants like other fields.
    """
    if isinstance(trainer, MateTrainer):
        return functools.partial(_MatePass, pinned=pinned)
    apart = bool(trainer.plan.constants) and not gathers
    return functools.partial(_FirstPass, apart=apart) if isinstance(trainer, FirstTrainer) else Pass


def constants_of(trainer: Trainer, simulation: int) -> dict[str, torch.Tensor] | None:
    """Return the constants of a simulation that a trainer, or a mate, holds."""
    if isinstance(trainer, MateTrainer):
        return trainer.constants.find(simulation)
    held = find_constants(trainer, simulation)
    return None if held is None else held.tensors()


class _FirstPass(Pass):
    """The pass of the first rank, which sends its mates each batch before the script gets it."""

    _trainer: FirstTrainer

    def __init__(self, *rest: Any, apart: bool) -> None:
        super().__init__(*rest)
        self._apart = apart

    def _draw(self) -> dict[str, torch.Tensor]:
        try:
            tensors = super()._draw()
        except MpidataError as error:
            self._trainer.fail_mates(error)
            raise
        self._trainer.give(tensors, self._apart)
        return tensors


class _MatePass(Pass):
    """The pass of a mate."""

    _trainer: MateTrainer

    def __init__(self, *rest: Any, pinned: bool) -> None:
        super().__init__(*rest)
        self._pinned = pinned

    def _draw(self) -> dict[str, torch.Tensor]:
        tensors = self._trainer.batch(self._pinned)
        if tensors is None:
            raise StopIteration
        return tensors
