"""A script that ends early while the other trainers continue: they treat this like any death of a trainer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mpidata.loading.figures import EXITS
from mpidata.trainer.elastic.spare import orders_of

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["may_leave", "must_die"]

_LOOKS_S = 0.05


def must_die(trainer: Trainer, exits: bool, status: int) -> bool:
    """Whether this trainer must end without leaving the job; sleeps until this is known.

    Parameters
    ----------
    trainer : Trainer
        The trainer whose script has ended.
    exits : bool
        Whether the script ended by `sys.exit` in its loop; otherwise it had left the loop.
    status : int
        Exit status of the script.

    Notes
    -----
    With status 0 the others may also end, for example because time is up: then all leave normally. If instead one of
    them waits for this trainer in a step, or draws from a stream, the scheduler has this sleeping process killed.
    """
    members = trainer.members
    ends_the_stream = trainer.plan.has_stream and not exits  # once it has left the loop, the stream is over for all
    if members is None or members.waits or trainer.servers is not None or trainer.is_done():
        return False
    if status or ends_the_stream:
        return status != 0
    batches = trainer.drawn if trainer.plan.has_stream else trainer.turns.given
    trainer.library.mpidata_trainer_report(EXITS.encode(), float(batches))
    orders = orders_of(trainer.library)
    while not may_leave(*orders()):
        time.sleep(_LOOKS_S)
    return False


def may_leave(order: int, count: int) -> bool:
    """Whether no trainer trains any more, by the newest order and its number of trainers; -1: the job is stopping."""
    return count < 0 or (order > 0 and not count)
