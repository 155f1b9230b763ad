"""mpidata.publish: arrays of the training script that solvers read."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpidata.arrays import NotPlainError, plain_array
from mpidata.dtypes import array_dtype, dtype_name
from mpidata.errors import LibraryError, StreamError
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer import join

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["publish"]

_lock = threading.Lock()
_first_alone: list[tuple[str, str, tuple[int, ...]]] = []
"""Name, dtype and shape of each array of the first call outside a job."""


def publish(arrays: Mapping[str, Any]) -> int:
    """Publish arrays, for example the parameters of a model, which solvers get by `mpidata.solver.refresh`.

    Parameters
    ----------
    arrays : mapping of str to tensor or ndarray
        Arrays by name, which has at most 127 bytes: torch tensors on any device, or NumPy arrays, of a dtype that
        fields may have, with 0 to 6 dimensions. They are copied; you may pass `model.state_dict()`. Every call must use
        the names, order, dtypes and shapes of the first call.

    Returns
    -------
    int
        The version: 1, 2, ...; in a resumed run it continues from the version in the checkpoint. The same on all
        trainers that have called this equally often. 0 outside a job, where nobody reads the arrays.

    Raises
    ------
    StreamError
        A value is neither a tensor nor an array, has a dtype that no field may have, or is a DTensor: publish its
        `full_tensor()`; or names, dtypes or shapes differ from those of the first call.
    LibraryError
        There is not enough memory.

    Notes
    -----
    Any trainer may call this; the values of trainer 0 count, or with `trainers.elastic` those of the first trainer that
    trains. On the others it returns at once. Not collective; any thread. Waits for no reader, only for the copy.
    Checkpoints contain the newest version. The first call of mpidata in a process joins the job, which is collective.
    """
    if not in_job():
        say_no_job()
        _compare_alone(_arrays(arrays, copies=False))
        return 0
    trainer = join.join()
    copies = _counts(trainer)
    made = _arrays(arrays, copies)
    n = len(made)
    dtypes = np.array([constants.DTYPES[dtype_name(array.dtype)].number for array in made.values()], np.int32)
    ndims = np.array([array.ndim for array in made.values()], np.int32)
    shapes = np.zeros((n, constants.MAX_NDIM), np.int64)
    for row, array in zip(shapes, made.values(), strict=True):
        row[: array.ndim] = array.shape
    names = (ctypes.c_char_p * n)(*(name.encode() for name in made))
    values = (ctypes.c_void_p * n)(*(array.ctypes.data for array in made.values()))
    version = ctypes.c_int64()
    described = dtypes.ctypes.data, ndims.ctypes.data, shapes.ctypes.data
    with _lock:
        status = trainer.library.mpidata_trainer_publish(n, names, *described, values, copies, ctypes.byref(version))
        try:
            check(trainer.library, status)
        except LibraryError as error:
            if status == constants.ERR_ARGUMENT:
                raise StreamError(str(error)) from None
            raise
    return version.value


def _compare_alone(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise StreamError, as in a job, if names, dtypes or shapes differ from those of the first call."""
    described = [(name, dtype_name(array.dtype), array.shape) for name, array in arrays.items()]
    with _lock:
        if not _first_alone:
            _first_alone.extend(described)
    if len(described) != len(_first_alone):
        raise StreamError(
            f"publish: {len(described)} arrays, but the first call had {len(_first_alone)}. Publish the same ones in "
            "each call."
        )
    for now, first in zip(described, _first_alone, strict=True):
        if now != first:
            raise StreamError(
                f"publish: {now[0]!r} is of {now[1]} and shape {list(now[2])}, but the first call had "
                f"{first[0]!r} of {first[1]} and shape {list(first[2])} here. Names, their order, dtypes and shapes "
                "must be those of the first call."
            )


def _counts(trainer: Trainer) -> bool:
    """Whether the values of this trainer count."""
    if trainer.members is not None:
        return trainer.members.is_first
    return trainer.replica.number == trainer.replica.rank == 0


def _arrays(arrays: Mapping[str, Any], copies: bool) -> dict[str, npt.NDArray[Any]]:
    if not isinstance(arrays, Mapping) or not arrays:
        raise StreamError(f"publish: {arrays!r:.100} names no arrays. Pass a dict: publish({{'weight': tensor, ...}}).")
    return {_name(name): _array(name, values, copies) for name, values in arrays.items()}


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise StreamError(f"publish: {name!r:.100} cannot name an array. Use a str.")
    if not name:
        raise StreamError("publish: the name of an array is empty. Give it one.")
    if "\0" in name:
        raise StreamError(
            f"publish: the name {name!r:.100} contains a zero byte, which ends a name in C. Leave it out."
        )
    if (length := len(name.encode())) >= constants.NAME_MAX:
        raise StreamError(
            f"publish: the name {name!r:.100} has {length} bytes, at most {constants.NAME_MAX - 1} are possible. Use "
            "a shorter name."
        )
    return name


def _array(name: str, values: Any, copies: bool) -> npt.NDArray[Any]:
    """Return the contiguous array to copy; without `copies`, any array of its shape and dtype."""
    if hasattr(values, "full_tensor"):
        raise StreamError(
            f"publish: {name!r} is a DTensor, and this trainer has only a part. Publish its full_tensor(), which all "
            "trainers that have parts of it must call."
        )
    if hasattr(values, "detach") and hasattr(values, "numpy"):  # a torch tensor
        kind = _fits(name, str(values.dtype).removeprefix("torch."))
        if not copies:
            return np.broadcast_to(np.zeros((), array_dtype(kind)), tuple(values.shape))
    elif type(values) in (list, tuple, bool, int, float, complex):
        raise StreamError(
            f"publish: {name!r} is of {type(values).__name__}, neither a tensor nor an array. Publish "
            "numpy.asarray(...) of it."
        )
    try:
        array = plain_array(values)
    except NotPlainError as error:
        raise StreamError(f"publish: {name!r} is {error.what}, {error.why}. {error.advice}") from None
    dtype = array.dtype.newbyteorder("=")
    if array.ndim > constants.MAX_NDIM:
        raise StreamError(
            f"publish: {name!r} has {array.ndim} dimensions, at most {constants.MAX_NDIM} are possible. Reshape it."
        )
    _fits(name, dtype_name(dtype))
    return np.require(array, dtype, ["C", "A"])


def _fits(name: str, dtype: str) -> str:
    if dtype in constants.DTYPES:
        return dtype
    raise StreamError(
        f"publish: {name!r} is of {dtype}, a dtype that fields do not support. Convert it to one of "
        f"{', '.join(constants.DTYPES)}."
    )
