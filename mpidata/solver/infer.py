"""Questions of a solver to the inference ranks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpidata.arrays import NotPlainError, plain_array
from mpidata.dtypes import array_dtype, dtype_name
from mpidata.native import constants, structures

if TYPE_CHECKING:
    from mpidata.solver.group_rank import GroupRank

__all__ = ["Answer", "Wanted", "infer"]

Wanted = npt.NDArray[Any] | tuple[Sequence[int], npt.DTypeLike]
"""An array to fill, or the shape and dtype of a new one."""


class Answer(dict[str, npt.NDArray[Any]]):
    """Arrays by name, and the `version` of the weights with which all rows were computed; 0: none were published."""

    version: int = 0


def infer(rank: GroupRank, inputs: Mapping[str, npt.ArrayLike], outputs: Mapping[str, Wanted]) -> Answer:
    """Send a question, and wait for the answer; see `mpidata.solver.infer`."""
    sent = {name: _sent(rank, name, values) for name, values in inputs.items()}
    answer = Answer({name: _wanted(rank, name, wanted) for name, wanted in outputs.items()})
    version = ctypes.c_int64()
    ins, outs = _arrays(sent), _arrays(answer)
    status = rank.library.mpidata_infer(ins, len(sent), outs, len(answer), ctypes.byref(version))
    if status == constants.END:
        rank.stop()
    rank.put(status)
    answer.version = version.value
    return answer


def _sent(rank: GroupRank, name: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        array = plain_array(values)
    except NotPlainError as error:
        rank.misuse(constants.ERR_ARGUMENT, f"infer, input {name!r}: it is {error.what}, {error.why}", error.advice)
    return _checked(rank, f"infer, input {name!r}", np.require(array, array.dtype.newbyteorder("="), ["C", "A"]))


def _wanted(rank: GroupRank, name: str, wanted: Wanted) -> npt.NDArray[Any]:
    said = f"infer, output {name!r}"
    if isinstance(wanted, tuple):
        array = _new(rank, said, *wanted)
    else:
        array = wanted
    if not (isinstance(array, np.ndarray) and array.flags.carray):
        what = f"{said}: it is not a NumPy array that is contiguous in C order and writable"
        rank.misuse(constants.ERR_ARGUMENT, what, "Give one, or a tuple (shape, dtype).")
    return _checked(rank, said, array)


def _new(rank: GroupRank, said: str, shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        of = array_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except TypeError:
        what = f"{said}: {dtype!r:.100} is not a dtype"
        rank.misuse(constants.ERR_DTYPE, what, f"Name one of {', '.join(constants.DTYPES)}.")
    try:
        return np.empty(tuple(shape), of)
    except (TypeError, ValueError) as error:
        what = f"{said}: {shape!r:.100} is not a shape ({error})"
        rank.misuse(constants.ERR_ARGUMENT, what, "Give a tuple of whole numbers from 0, the rows first.")


def _checked(rank: GroupRank, said: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if dtype_name(array.dtype) not in constants.DTYPES:
        what = f"{said}: its dtype is {array.dtype}"
        rank.misuse(constants.ERR_DTYPE, what, f"Convert it to one of {', '.join(constants.DTYPES)}.")
    return array


def _arrays(named: Mapping[str, npt.NDArray[Any]]) -> ctypes.Array[Any]:
    """Describe arrays for C; the caller must keep the arrays."""
    made = (structures.Array * len(named))()
    for one, (name, array) in zip(made, named.items(), strict=True):
        one.name, one.values = _address(name.encode()), array.ctypes.data
        one.dtype, one.ndim = constants.DTYPES[dtype_name(array.dtype)].number, array.ndim
        one.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return made


def _address(text: bytes) -> int | None:
    """Return the address of a text, which is valid while Python keeps the text; names are kept."""
    kept = _NAMES.setdefault(text, ctypes.create_string_buffer(text))
    return ctypes.addressof(kept)


_NAMES: dict[bytes, ctypes.Array[ctypes.c_char]] = {}
