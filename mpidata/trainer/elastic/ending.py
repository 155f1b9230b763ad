"""A script that ends in the middle while the other trainers go on: for them this is a death as any other."""

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
    """Whether this trainer is to end without leaving the job; sleeps until that is known.

    Parameters
    ----------
    trainer : Trainer
        Whose script has ended.
    exits : bool
        By `sys.exit` in its loop; else it had left that.
    status : int
        With which it ends.

    Notes
    -----
    With status 0 the others may end likewise, as where the time is up: then all leave in order. Where one of them waits
    for this trainer in a step instead, or draws from a stream, the scheduler has this process killed, which sleeps.
    """
    members = trainer.members
    ends_the_stream = trainer.plan.has_stream and not exits  # as it has left the loop, the stream is over for all
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
    """Whether nobody trains any more, by the newest order of how many are to train; -1: the job is stopping."""
    return count < 0 or (order > 0 and not count)
