"""The validation samples that a script requests."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from mpidata.errors import StreamError
from mpidata.trainer.elastic.state_transfer import refuse_new
from mpidata.trainer.frameworks.preparation import teach_accelerate
from mpidata.trainer.local_sgd.meeting_points import come
from mpidata.trainer.trainer import Trainer
from mpidata.trainer.validation.accelerate_shares import in_step
from mpidata.trainer.validation.all_samples import WholeValidation
from mpidata.trainer.validation.equal_shares import EvenValidation
from mpidata.trainer.validation.sampler_guard import Dealt
from mpidata.trainer.validation.share import ValidationDataset

__all__ = ["AskedValidation", "Validation"]

Validation: TypeAlias = ValidationDataset | EvenValidation | WholeValidation


class AskedValidation:
    """The datasets that `MPIStreamDataset.validation` returns, each made at its first request.

    Parameters
    ----------
    trainer : Trainer
        The trainer that holds the share.
    gathers : bool
        Whether samples have copies of the fields with ``per: simulation``.
    """

    def __init__(self, trainer: Trainer, *, gathers: bool) -> None:
        self._trainer, self._gathers = trainer, gathers
        self._own: ValidationDataset | None = None
        self._even: EvenValidation | None = None
        self._whole: WholeValidation | None = None

    def get(self, *, share: bool, even: bool) -> Validation:
        """Return the samples; arguments and errors are those of `MPIStreamDataset.validation`."""
        teach_accelerate(Dealt, in_step)
        if even and not share:
            raise StreamError(
                "stream.validation(share=False, even=True): all trainers have all samples, so there is nothing to pad. "
                "Leave out one of the two."
            )
        if even and self._trainer.members is not None:
            raise StreamError(
                "stream.validation(even=True) cannot be used with 'trainers.elastic', because shares change when a "
                "trainer dies. Use stream.validate, which allows shares of different lengths, or leave `even` out."
            )
        members = self._trainer.members
        if not share and members is not None:
            refuse_new(members, "stream.validation(share=False)")
        own = self.share()
        if even:
            if self._even is None:
                self._even = EvenValidation.pad(own)
            return self._even
        if not share:
            if self._one_lacks_whole() or self._whole is None:
                self._whole = WholeValidation.collect(own)
            return self._whole
        return own

    def _one_lacks_whole(self) -> bool:
        """Whether a trainer lacks samples; collective with spares, because one that lacks them may have joined."""
        members, own = self._trainer.members, np.array([self._whole is None], np.int64)
        if members is None or not self._trainer.plan.trainer_spares:
            return self._whole is None
        from mpi4py import MPI

        lacking = np.zeros_like(own)
        come(self._trainer.apart)
        members.together(lambda attempt: attempt.post(attempt.communicator.Iallreduce, own, lacking, MPI.MAX))
        return bool(lacking[0])

    def share(self) -> ValidationDataset:
        """Return this trainer's share, with samples that were sent again since the last call."""
        if self._own is None:
            self._own = ValidationDataset.wait(self._trainer, gathers=self._gathers)
        self._own.refresh()
        return self._own
