"""Addresses of arrays in device memory, as of CuPy, torch, JAX, Numba and others."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from mpidata.dtypes import BITS_OF_BFLOAT16

__all__ = ["DeviceArray", "device_array"]

# https://dmlc.github.io/dlpack/latest/c_api.html
_CUDA, _ROCM, _CUDA_MANAGED = 2, 10, 13
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_BFLOAT = 4
_LEGACY_DEFAULT = 1  # of CUDA, in both protocols


class _Tensor(ctypes.Structure):
    """The `DLTensor` at the start of the contents of a DLPack capsule."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


@dataclass
class DeviceArray:
    """Address and layout of an array.

    Attributes
    ----------
    address : int
        Address of the first element.
    dtype : dtype
        NumPy's dtype; `BITS_OF_BFLOAT16` for bfloat16.
    shape, strides : tuple of int
        Strides are in bytes.
    stream : int or None
        The stream that computes the values; None: the default stream.
    owner : object
        The object that owns the memory.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stream: int | None
    owner: object

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def contiguous(self) -> bool:
        """Whether the elements are contiguous in C order."""
        return self.strides == _contiguous(self.shape, self.dtype.itemsize)


def device_array(values: Any) -> DeviceArray | None:
    """Return the address and layout of an array in CUDA or HIP memory; None if the values are not such an array.

    Uses DLPack, whose producer makes the default stream wait for the values; otherwise `__cuda_array_interface__`,
    which names the stream. Exceptions of the array pass through.
    """
    if isinstance(values, DeviceArray):
        return values
    kind = type(values)
    if hasattr(kind, "__dlpack_device__") and hasattr(kind, "__dlpack__"):
        device = None
        with contextlib.suppress(Exception):  # a device that DLPack does not know
            device = int(values.__dlpack_device__()[0])
        return _by_dlpack(values, device) if device in (_CUDA, _ROCM, _CUDA_MANAGED) else None
    if hasattr(kind, "__cuda_array_interface__"):
        return _by_interface(values)
    return None


def _by_dlpack(values: Any, device: int) -> DeviceArray:
    if hasattr(values, "detach"):  # torch does not export a tensor that requires a gradient
        values = values.detach()
    capsule = values.__dlpack__(stream=0 if device == _ROCM else _LEGACY_DEFAULT)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    dtype = _dtype(tensor)
    strides = _contiguous(shape, dtype.itemsize)
    if tensor.strides:
        strides = tuple(stride * dtype.itemsize for stride in tensor.strides[: tensor.ndim])
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceArray(address, dtype, shape, _plain(shape, strides, dtype), None, capsule)


def _dtype(tensor: _Tensor) -> np.dtype[Any]:
    if tensor.code == _BFLOAT and tensor.bits == 16 and tensor.lanes == 1:
        return BITS_OF_BFLOAT16
    if tensor.lanes != 1 or tensor.code not in _KINDS or tensor.bits % 8:
        raise TypeError(f"its elements are not NumPy numbers (DLPack's type {tensor.code}, {tensor.bits} bits)")
    return np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")


def _by_interface(values: Any) -> DeviceArray:
    """https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html."""
    said = values.__cuda_array_interface__
    if said.get("mask") is not None:
        raise TypeError("it has a mask")
    dtype = np.dtype(said["typestr"])
    if not dtype.isnative:
        raise TypeError(f"its elements, {said['typestr']}, have another byte order than this machine")
    address, shape = index(said["data"][0] or 0), tuple(map(index, said["shape"]))
    if not 0 <= address < 1 << 64:
        raise ValueError(f"its address is {address}")
    strides = tuple(map(index, said.get("strides") or _contiguous(shape, dtype.itemsize)))
    # Version 2 has no stream: the values are ready for the default stream. None: they are ready for any.
    stream = said.get("stream")
    where = None if stream in (None, _LEGACY_DEFAULT) else int(stream)
    return DeviceArray(address, dtype, shape, _plain(shape, strides, dtype), where, values)


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides[: len(shape)]))


def _plain(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the strides, those of dimensions of extent 1 as if the array were contiguous."""
    of_c = _contiguous(shape, dtype.itemsize)
    return tuple(c if extent <= 1 else stride for extent, stride, c in zip(shape, strides, of_c, strict=True))
