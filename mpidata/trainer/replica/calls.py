"""Calls that all ranks of a replica must make, as text; a mate compares its own with that of the first rank."""

from __future__ import annotations

from typing import Any

from mpidata.trainer.replica.first_rank import FirstTrainer
from mpidata.trainer.replica.mate import MateTrainer
from mpidata.trainer.trainer import Trainer

__all__ = ["same_call"]


def same_call(trainer: Trainer, call: str, **arguments: Any) -> None:
    """Raise StreamError on a mate whose first rank makes another call; no effect in a replica of one rank.

    Parameters
    ----------
    trainer : Trainer
        The trainer of this process.
    call : str
        The call, as text.
    **arguments
        Arguments that must be the same; None and False are not named in errors.

    Notes
    -----
    A mate waits until the first rank makes a call; the first rank does not wait.
    """
    if isinstance(trainer, (FirstTrainer, MateTrainer)):
        given = [f"{name}={value!r}" for name, value in arguments.items() if value is not None and value is not False]
        trainer.same_call(f"{call}({', '.join(given)})" if arguments else call)
