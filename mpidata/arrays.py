"""Convert a user's values to plain arrays without loss, or raise an error that names what would be lost."""

from __future__ import annotations

import types
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.dtypes import BFLOAT16, BITS_OF_BFLOAT16
from mpidata.errors import as_line
from mpidata.native import constants

__all__ = ["NotPlainError", "plain_array", "plain_floats", "plain_number"]

_NUMBERS = {int, float, bool, complex, *np.sctypeDict.values()}
_DENSE = (
    "Give a rectangular, dense array of numbers, for example tensor.to_dense(), matrix.toarray() or, from a GPU, "
    "array.get()."
)


class NotPlainError(TypeError):
    """A value is not an array of numbers, or is more than one.

    Parameters
    ----------
    what, why, advice : str
        What the value is; a clause with "which" or "whose" that states the reason; a sentence that states the fix.
    """

    def __init__(self, what: str, why: str, advice: str) -> None:
        self.what, self.why, self.advice = what, why, advice
        super().__init__(f"{what}, {why}. {advice}")


def plain_array(values: Any, dtype: str | None = None) -> npt.NDArray[Any]:
    """Make an array without losing anything.

    Parameters
    ----------
    values : object
        Anything that NumPy converts to an array, or a torch tensor.
    dtype : str, optional
        The field's dtype: decides how a Python int or bool is converted, as in NumPy (NEP 50). Everything else keeps
        its own dtype.

    Returns
    -------
    ndarray
        The values themselves if they are an array, which then shares their memory. Masked elements of floats are NaN.
        A bfloat16 tensor of torch becomes an array of `BITS_OF_BFLOAT16`.

    Raises
    ------
    NotPlainError
        The values have a unit, or masked elements that cannot be NaN, or do not fit, or are not an array of numbers.
    """
    made = _of_int(values, dtype) if isinstance(values, int) else _made(values, dtype)
    if made.dtype == object and made.size:
        raise NotPlainError(_kind(values), "which NumPy converts to an array of objects", _DENSE)
    return made


def plain_floats(values: Any) -> npt.NDArray[np.float64]:
    """Like `plain_array`, but make a new float64 array of all that `float` accepts; raises TypeError or ValueError."""
    made = _made(values, None)
    if made.dtype == BITS_OF_BFLOAT16:
        bits = made.reshape(-1).view(np.uint16).astype(np.uint32) << 16  # NumPy 1 views no scalar as wider
        made = bits.view(np.float32).reshape(made.shape)
    if made.dtype.kind in "cmM":
        raise TypeError(f"{made.dtype} is not a dtype of real numbers")
    return made.astype(np.float64)


def plain_number(value: Any) -> float:
    """Make a float without losing anything; raises NotPlainError, and whatever `float` raises."""
    _refuse_unit(value)
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind in ("c", "m", "M"):
        raise TypeError(f"{value.dtype} is not a real number")
    return float(value)


def _made(values: Any, dtype: str | None) -> npt.NDArray[Any]:
    """Like `plain_array`, but may return an array of objects."""
    if type(values) is np.ndarray:
        return values
    try:
        return _convert(values, dtype)
    except NotPlainError:
        raise
    except Exception as error:  # a user's object may raise anything
        raise NotPlainError(_kind(values), f"which NumPy cannot convert ({as_line(error)})", _DENSE) from None


def _convert(values: Any, dtype: str | None) -> npt.NDArray[Any]:
    _refuse_unit(values)
    if _own(values, "units") is not None and hasattr(values, "magnitude"):  # of pint, without a unit: NumPy would warn
        return _made(values.magnitude, dtype)
    if _own(values, "dims") is not None and hasattr(type(values), "data"):  # xarray: its data may have a unit or a mask
        return _made(values.data, dtype)
    if isinstance(values, (list, tuple, deque)):
        # NumPy drops the masks of masked arrays in a list.
        values = [one if type(one) in _NUMBERS or isinstance(one, str) else _made(one, None) for one in values]
    if hasattr(values, "detach") and hasattr(values, "numpy"):  # a tensor of torch
        array = _bits(values) if str(values.dtype) == "torch.bfloat16" else values.numpy(force=True)
    else:
        array = np.asanyarray(values)
    _refuse_unit(array)
    plain: npt.NDArray[Any] = np.asarray(array)
    for masked in (values, array):  # either may be one
        mask = _own(masked, "mask")
        if getattr(mask, "shape", None) == plain.shape and plain.dtype.names is None and np.any(mask):
            plain = _with_nan(values, plain, np.asarray(mask), dtype)
    return plain


def _bits(tensor: Any) -> npt.NDArray[Any]:
    """Make an array of a bfloat16 tensor."""
    import torch

    array: npt.NDArray[Any] = tensor.detach().cpu().view(torch.int16).numpy()
    return array.view(BITS_OF_BFLOAT16)


def _with_nan(values: object, plain: npt.NDArray[Any], mask: npt.NDArray[Any], dtype: str | None) -> npt.NDArray[Any]:
    declared = constants.DTYPES[dtype].kind if dtype else plain.dtype.kind
    for name, kind in ((plain.dtype, plain.dtype.kind), (dtype, declared)):
        if kind not in "fc":
            why = f"which has {np.count_nonzero(mask)} masked elements, and {name} has no NaN for them"
            advice = "Give them a value, for example array.filled(0)."
            if declared == "f":
                advice = "Convert it to floats, in which they are NaN: array.astype('float64')."
            raise NotPlainError(_kind(values), why, advice)
    filled = plain.copy()
    filled[mask] = np.nan
    return filled


def _of_int(value: int, dtype: str | None) -> npt.NDArray[Any]:
    if dtype is None:
        dtype = "int64" if -(1 << 63) <= value < 1 << 63 else "float64"
    kind = constants.DTYPES[dtype].kind
    least, most = _range(dtype, kind)
    if not least <= value <= most:
        bits = value.bit_length()
        what = f"the int {value:d}" if bits < 128 else f"an int of {bits} bits"
        raise NotPlainError(what, f"which {dtype} does not hold", "Give one that fits, or declare another dtype.")
    return np.asarray(int(value), {"f": "float64", "c": "complex128"}.get(kind, dtype))


def _range(dtype: str, kind: str) -> tuple[int, int]:
    """Return the least and the greatest int that a dtype of fields has."""
    if kind == "b":
        return 0, 1
    if kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    greatest = (2**8 - 1) << 120 if dtype == BFLOAT16 else int(np.finfo(dtype).max)
    return -greatest, greatest


def _refuse_unit(values: Any) -> None:
    for name in ("units", "unit"):
        unit = _own(values, name)
        if unit is not None and str(unit) not in ("", "dimensionless"):
            raise NotPlainError(
                _kind(values),
                f"whose unit, {str(unit) or 'none'!r:.60}, would be lost",
                "Give its numbers in the intended unit: quantity.to(unit).magnitude in pint, "
                "quantity.to_value(unit) in astropy.",
            )


def _kind(values: object) -> str:
    kind = type(values)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _own(values: Any, name: str) -> Any:
    """Return an attribute, or None if it is missing, a method, a text, or made from a label (pandas, xarray)."""
    if not hasattr(type(values), name) and name not in getattr(values, "__dict__", ()):
        return None
    value = getattr(values, name)
    return None if isinstance(value, (str, types.MethodType, types.BuiltinMethodType)) else value
