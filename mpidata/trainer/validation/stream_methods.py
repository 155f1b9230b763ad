"""The methods of MPIStreamDataset for validation samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate

from mpidata.device.device import Device
from mpidata.device.prefetch import Prefetcher
from mpidata.packing import PackedCollate
from mpidata.trainer.elastic.state_transfer import refuse_new
from mpidata.trainer.shares.grouping import check_positive
from mpidata.trainer.torch_loaders import refuse_workers
from mpidata.trainer.trainer import Trainer
from mpidata.trainer.validation.request import AskedValidation, Validation
from mpidata.trainer.validation.sums import sum_over

__all__ = ["StreamValidation"]


class StreamValidation:
    """The part of MPIStreamDataset for validation samples."""

    _trainer: Trainer
    _validation: AskedValidation
    _device: Device | None

    def validation(self, *, share: bool = True, even: bool = False) -> Validation:
        """Wait for the validation samples, and return this trainer's share, or all of them.

        Parameters
        ----------
        share : bool
            True: only the samples that this trainer holds; each sample is on one trainer. False: all samples on each
            trainer, copied.
        even : bool
            Pad the share to the length of the longest one, with samples whose ``mask`` is false.

        Returns
        -------
        ValidationDataset, EvenValidation or WholeValidation
            A map-style dataset of single samples, in CPU memory; the same object at every call with these arguments.

        Raises
        ------
        StreamError
            The job was stopped before the samples were complete; or `even` without `share`, or with a field ``mask``.

        Notes
        -----
        Sleeps until the samples are complete. The first call with ``share=False`` or ``even=True`` is collective over
        the trainers, and sleeps until all have called it; other calls are not collective. With ``trainers.spares`` each
        call with ``share=False`` is collective, because a trainer may have joined that does not have all samples.
        """
        refuse_workers()
        return self._validation.get(share=share, even=even)

    def validate(self, measure: Callable[[dict[str, Any]], torch.Tensor], batch_size: int) -> torch.Tensor:
        """Sum a quantity over the validation samples of all trainers, counting each sample once.

        Parameters
        ----------
        measure : callable
            Gets a batch of validation samples, on the stream's device, and returns sums over them: a tensor with the
            same number of elements at each call.
        batch_size : int
            Number of samples in a batch; the last batches have fewer.

        Returns
        -------
        torch.Tensor
            float64, one-dimensional: the sum of the results of `measure` on all trainers, the same on all. Empty if
            there are no validation samples.

        Raises
        ------
        StreamError
            As `validation`; or `measure` returns different numbers of elements.

        Notes
        -----
        Collective over the trainers; sleeps until all have called it. `measure` is called without gradients, on each
        trainer as often as its share needs. It must therefore not make collective calls: use ``model.module``, not
        ``model``. With ``trainers.elastic``, if a trainer dies before all have the sums, its samples come again and are
        added.
        """
        refuse_workers()
        if self._trainer.members is not None:
            refuse_new(self._trainer.members, "stream.validate")
        check_positive("batch_size", batch_size)
        plan = self._trainer.plan
        collate = PackedCollate({field.name: field for field in plan.fields}) if plan.lengths else default_collate
        to_device = Prefetcher[None](self._device, 0).now if self._device is not None else lambda batch: batch
        return sum_over(self._validation.share, measure, batch_size, lambda samples: to_device(collate(samples)))
