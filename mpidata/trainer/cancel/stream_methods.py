"""The methods of MPIStreamDataset to cancel simulations."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.arrays import plain_array
from mpidata.native.library import check
from mpidata.trainer.trainer import Trainer

__all__ = ["StreamCancel", "cancel"]


class StreamCancel:
    """The part of MPIStreamDataset that cancels simulations."""

    _trainer: Trainer

    def cancel(self, ids: Any) -> list[int]:
        """Cancel simulations that the training no longer needs.

        Parameters
        ----------
        ids : int, iterable of int, or array or tensor of integers
            Ids of any simulations, for example ``batch["simulation"]``.

        Returns
        -------
        list of int
            The accepted ids, each once. Not accepted are ids that the job does not have, validation simulations, and
            simulations that, as far as this trainer knows, were cancelled before or have ended.

        Raises
        ------
        TypeError
            `ids` are not integers.

        Notes
        -----
        Any trainer, any thread; not collective; does not block. A waiting simulation never runs. A running one leaves
        its loop at one of its next steps; if it ends by itself before, this is not an error. Complete samples stay and
        are drawn; later ones are dropped. No other simulation replaces it.
        """
        return cancel(self._trainer, ids)


def cancel(trainer: Trainer, ids: Any) -> list[int]:
    """Cancel simulations as `MPIStreamDataset.cancel` does."""
    wanted = _as_ids(ids)
    taken, count = np.empty(len(wanted), np.int64), ctypes.c_int64()
    call = trainer.library.mpidata_trainer_cancel
    check(trainer.library, call(wanted.ctypes.data, len(wanted), taken.ctypes.data, ctypes.byref(count)))
    told: list[int] = taken[: count.value].tolist()
    return told


def _as_ids(ids: Any) -> NDArray[np.int64]:
    """Return an array of ids; an id that does not fit an int64 becomes -1, which no job has."""
    listed = list(ids) if isinstance(ids, Iterable) and not hasattr(ids, "dtype") else ids
    if isinstance(listed, list):
        if not all(_is_integer(one) for one in listed):
            raise _refusal(next(one for one in listed if not _is_integer(one)))
        return np.array([int(one) if -1 < int(one) < 1 << 63 else -1 for one in listed], np.int64)
    if _is_integer(listed):
        return _as_ids([listed])
    try:
        array = plain_array(listed)
    except Exception:  # any object may be given
        raise _refusal(ids) from None
    if isinstance(listed, bool) or not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
        raise _refusal(ids)
    flat = array.ravel()
    return np.where(flat <= np.iinfo(np.int64).max, flat, -1).astype(np.int64)


def _is_integer(value: Any) -> bool:
    """Whether a value is one integer: an int, a NumPy integer, or a tensor of one."""
    if isinstance(value, (bool, np.bool_)) or getattr(value, "shape", ()) != ():
        return False
    if hasattr(value, "is_floating_point"):
        return "int" in str(value.dtype)
    return isinstance(value, (int, np.integer)) or (
        isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.integer)
    )


def _refusal(value: Any) -> TypeError:
    return TypeError(
        f"cancel: {value!r:.100} is not a simulation id. Give whole numbers, for example those of batch['simulation']."
    )
