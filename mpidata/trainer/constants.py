"""Fields that are put once per simulation, as the trainer holds them: views without a copy."""

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
    """The constants of one try of a simulation, in memory of the library that lives as long as this object.

    Parameters
    ----------
    trainer : Trainer
        The trainer that holds them.
    address : int
        Address of `mpidata_try_constants`, whose reference is released at the end; also an attribute.
    """

    def __init__(self, trainer: Trainer, address: int) -> None:
        self._plan, self.address = trainer.plan, address
        weakref.finalize(self, trainer.release_constants, [address]).atexit = False
        self._held = look(trainer.library, address, len(self._plan.fields), len(self._plan.numbers))

    def array(self, number: int) -> npt.NDArray[np.generic] | None:
        """Return a flat view of a field's values, by its number in the plan; None if it has none or was not put."""
        field, address = self._plan.fields[number], self._held.values[number]
        if not address:
            return None
        size = field.nbytes * (self._length(field) if field.length else 1)
        return lease(address, size, functools.partial(_keep, self)).view(numpy_dtype(field.dtype))

    def _length(self, field: Field) -> int:
        return max(0, int(self._held.numbers[list(self._plan.numbers).index(field.length)]))

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return views of the fields by name, in their own shapes; zeros for an optional field that was not put."""
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
    """The constants of drawn samples, which are held as long as the batch.

    Parameters
    ----------
    trainer : Trainer
        The trainer that draws.
    count : int or None
        Largest number of samples in a batch; None for single samples, which have views.
    views : bool
        Whether single samples have views.

    Attributes
    ----------
    views : bool
        Whether drawn samples have views.
    """

    def __init__(self, trainer: Trainer, count: int | None, *, views: bool) -> None:
        self.views = views and count is None
        self._trainer = trainer
        self._list = (ctypes.c_void_p * ((count or 1) * trainer.plan.samples_window))()

    def of_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Hold the constants of the batch that was drawn last; return the views of a single sample."""
        found = ctypes.c_int64()
        library = self._trainer.library
        check(library, library.mpidata_trainer_constants_drawn(self._list, ctypes.byref(found)))
        held = [address for address in self._list[: found.value] if address]
        if self.views:
            return HeldConstants(self._trainer, held[0]).tensors()
        weakref.finalize(batch.memory, self._trainer.release_constants, held).atexit = False
        return {}


def find_constants(trainer: Trainer, simulation: int) -> HeldConstants | None:
    """Return the newest constants of a simulation that the trainer holds."""
    found = ctypes.c_void_p()
    check(trainer.library, trainer.library.mpidata_trainer_constants_find(simulation, ctypes.byref(found)))
    return HeldConstants(trainer, found.value) if found.value else None


def of_validation(trainer: Trainer, index: int) -> HeldConstants:
    """Return the constants of a step of the validation samples."""
    found = ctypes.c_void_p()
    check(trainer.library, trainer.library.mpidata_trainer_validation_constants(index, ctypes.byref(found)))
    assert found.value is not None
    return HeldConstants(trainer, found.value)


def _keep(held: HeldConstants) -> None:
    """Do nothing: a reference to this call keeps the values alive."""
