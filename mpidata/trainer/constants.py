"""Fields that are put once a simulation, as the trainer holds them: views without a copy."""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from mpidata.dtypes import numpy_dtype
from mpidata.native.library import check
from mpidata.native.structures import look
from mpidata.tensors import number_tensor, tensor_of
from mpidata.trainer.batches.pool import lease

if TYPE_CHECKING:
    from mpidata.run.plan import Field
    from mpidata.trainer.batches.fixed_shapes import Batch
    from mpidata.trainer.trainer import Trainer

__all__ = ["DrawnConstants", "HeldConstants", "find_constants", "of_validation"]


class HeldConstants:
    """The constants of one try of a simulation, in the library's memory, which is kept as long as this object.

    Parameters
    ----------
    trainer : Trainer
        Who holds them.
    address : int
        Of `mpidata_try_constants`, with a reference that is given back at the end; an attribute, too.
    """

    def __init__(self, trainer: Trainer, address: int) -> None:
        self._plan, self.address = trainer.plan, address
        weakref.finalize(self, trainer.release_constants, [address]).atexit = False
        self._held = look(trainer.library, address, len(self._plan.fields), len(self._plan.numbers))

    def array(self, number: int) -> npt.NDArray[np.generic] | None:
        """View the values of a field, by its number in the plan, flat; None: it has none, or was not put."""
        field, address = self._plan.fields[number], self._held.values[number]
        if not address:
            return None
        size = field.nbytes * (self._length(field) if field.length else 1)
        return lease(address, size, functools.partial(_keep, self)).view(numpy_dtype(field.dtype))

    def _length(self, field: Field) -> int:
        return max(0, int(self._held.numbers[list(self._plan.numbers).index(field.length)]))

    def tensors(self) -> dict[str, torch.Tensor]:
        """View them: by field, in its own shape; zeros in place of an optional one that was not put."""
        views = {}
        for number, field in enumerate(self._plan.fields):
            if not field.per_simulation:
                continue
            shape = field.extents({field.length: self._length(field)} if field.length else {})
            values = self.array(number)
            array = np.zeros(shape, numpy_dtype(field.dtype)) if values is None else values.reshape(shape)
            views[field.name] = tensor_of(array, field.dtype)
            if field.optional:
                views[f"{field.name}_given"] = number_tensor(values is not None)
        return views


class DrawnConstants:
    """The constants of what is drawn, which are held as long as the batch.

    Parameters
    ----------
    trainer : Trainer
        Who draws.
    count : int or None
        Samples in a batch, at most; None for single samples, which have views.
    views : bool
        Whether single samples have views.

    Attributes
    ----------
    views : bool
        Whether what is drawn has views.
    """

    def __init__(self, trainer: Trainer, count: int | None, *, views: bool) -> None:
        self.views = views and count is None
        self._trainer = trainer
        self._list = (ctypes.c_void_p * ((count or 1) * trainer.plan.samples_window))()

    def of_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Hold those of the batch that was drawn last; returns what a single sample has of them."""
        found = ctypes.c_int64()
        library = self._trainer.library
        check(library, library.mpidata_trainer_constants_drawn(self._list, ctypes.byref(found)))
        held = [address for address in self._list[: found.value] if address]
        if self.views:
            return HeldConstants(self._trainer, held[0]).tensors()
        weakref.finalize(batch.memory, self._trainer.release_constants, held).atexit = False
        return {}


def find_constants(trainer: Trainer, simulation: int) -> HeldConstants | None:
    """Find the newest constants of a simulation that the trainer holds."""
    found = ctypes.c_void_p()
    check(trainer.library, trainer.library.mpidata_trainer_constants_find(simulation, ctypes.byref(found)))
    return HeldConstants(trainer, found.value) if found.value else None


def of_validation(trainer: Trainer, index: int) -> HeldConstants:
    """Find those of a step of the validation samples."""
    found = ctypes.c_void_p()
    check(trainer.library, trainer.library.mpidata_trainer_validation_constants(index, ctypes.byref(found)))
    assert found.value is not None
    return HeldConstants(trainer, found.value)


def _keep(held: HeldConstants) -> None:
    """Do nothing; to refer to this keeps the values."""
