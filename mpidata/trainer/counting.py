"""Count the batches that a trainer gets from loaders in a job without a stream; checkpoints are taken between them."""

from __future__ import annotations

import functools

from mpidata.loading.turns import Turns
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.trainer import join
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.replica.calls import same_call
from mpidata.trainer.trainer import Trainer

__all__ = ["count_batch", "turns"]


@functools.cache
def turns() -> Turns:
    """Return the turns of this process's iterations; joins the job. If there is a stream, only its batches count."""
    trainer = join.join()
    count = (lambda: None) if trainer.plan.has_stream else functools.partial(count_batch, trainer)
    trainer.turns = Turns(count, same_call=functools.partial(same_call, trainer))
    if trainer.members is not None and trainer.members.meeting is not None:
        trainer.turns.drawing = trainer.members.drawing
    return trainer.turns


def count_batch(trainer: Trainer) -> bool:
    """Count a batch, and take a snapshot before it if one is due; False if something else comes first.

    Raises
    ------
    StreamError
        The checkpoint that this run resumes holds states for which the script has registered nothing.
    LibraryError
        The job has failed.

    Notes
    -----
    Sleeps only while the trainers agree on the batch of a checkpoint.
    """
    trainer.checkpoints.check_claimed()
    status = constants.ERR_AGAIN
    while status in (constants.ERR_AGAIN, constants.CHECKPOINT) and not trainer.closed:
        status = trainer.count_batch()
        if status == constants.CHECKPOINT:
            reached("checkpoint")
            if not trainer.checkpoints.take():
                return False
        elif status == constants.ERR_AGAIN and trainer.members is not None:
            trainer.members.look()
    if status not in (constants.ERR_AGAIN, constants.END):  # if the job is over, the wait for the batch finds out
        check(trainer.library, status)
        trainer.drawn += 1
    return True
