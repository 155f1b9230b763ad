"""Sums over the validation samples of all trainers; each counts once, whichever trainer dies meanwhile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.native.waiting import wait
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.local_sgd.meeting_points import come
from mpidata.trainer.trainer import Trainer
from mpidata.trainer.validation.share import ValidationDataset

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["sum_over"]

_Collate = Callable[[list[Any]], Any]
_Measure = Callable[[dict[str, Any]], torch.Tensor]
_Numbers = NDArray[np.float64]


def sum_over(
    ask: Callable[[], ValidationDataset], measure: _Measure, batch_size: int, collate: _Collate
) -> torch.Tensor:
    """Sum the results of `measure` over batches of validation samples; arguments and errors as in `stream.validate`.

    `ask` waits until all samples are there, and returns this trainer's share.
    """
    seen, own, everything = 0, np.zeros(0), None
    while everything is None:
        share = ask()
        generation = 0 if share.trainer.members is None else share.trainer.members.generation
        come(share.trainer.apart)
        for first in range(seen, share.count(), batch_size):
            samples = [share[i] for i in range(first, min(first + batch_size, share.count()))]
            own = _add(own, _measured(measure, collate(samples)))
            reached("validate")
        seen = share.count()
        reached("validated")
        everything = share.trainer.alike("sums", functools.partial(_of_all, share.trainer, own, generation))
    return everything


def _of_all(trainer: Trainer, own: _Numbers, generation: int) -> torch.Tensor | None:
    everything = _over_trainers(trainer, own, generation)
    return None if everything is None else torch.from_numpy(everything)


def _measured(measure: _Measure, batch: dict[str, Any]) -> _Numbers:
    with torch.no_grad():
        values: _Numbers = measure(batch).detach().to("cpu", torch.float64).reshape(-1).numpy()
    return values


def _add(own: _Numbers, more: _Numbers) -> _Numbers:
    if len(own) and len(own) != len(more):
        raise StreamError(
            f"stream.validate: `measure` returned {len(own)} numbers for one batch, and {len(more)} for another. "
            "Return the same number for each."
        )
    return own + more if len(own) else more.copy()


def _over_trainers(trainer: Trainer, own: _Numbers, generation: int) -> _Numbers | None:
    """Sum over the trainers; None, on all living ones, if one has died since this one's `generation`."""
    communicator, members = trainer.communicator, trainer.members
    if communicator is None:
        return own
    from mpi4py import MPI

    size = np.array([len(own), -generation], np.int64)  # 0 without samples
    if members is None:
        _reduce(communicator, size, MPI.MAX)
        everything = _widened(own, int(size[0]))
        _reduce(communicator, everything, MPI.SUM)
        return everything
    most = np.zeros_like(size)
    members.together(lambda attempt: attempt.post(attempt.communicator.Iallreduce, size, most, MPI.MAX))
    if -most[1] != members.generation:
        return None
    sent = _widened(own, int(most[0]))
    everything = np.zeros_like(sent)
    done = members.once(lambda attempt: attempt.post(attempt.communicator.Iallreduce, sent, everything, MPI.SUM))
    return everything if done else None


def _reduce(communicator: MPI.Intracomm, numbers: NDArray[Any], operation: MPI.Op) -> None:
    from mpi4py import MPI

    wait(communicator.Iallreduce(MPI.IN_PLACE, numbers, operation), longest_s=0.02)


def _widened(own: _Numbers, size: int) -> _Numbers:
    if len(own) not in (0, size):
        raise StreamError(
            f"stream.validate: `measure` returned {len(own)} numbers on this trainer, and {size} on another. Return "
            "the same number on each."
        )
    return own.copy() if len(own) else np.zeros(size)
