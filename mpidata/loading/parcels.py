"""Contents of a parcel: a pickle with the memory of its tensors and arrays, or an exception to be raised."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any, NoReturn

import cloudpickle
import torch
from torch._utils import ExceptionWrapper

from mpidata.loading.transport import Parcel, Status

__all__ = ["pack", "pack_exception", "reraise", "unpack"]

# Smaller buffers are put into the pickle, because copying them costs less than a message.
_IN_PICKLE = 4096


def pack(thing: Any) -> tuple[bytes, list[memoryview]]:
    """Pickle a batch.

    Parameters
    ----------
    thing : object
        Any nesting of tensors, arrays, numbers, strings and other picklable objects.

    Returns
    -------
    (bytes, list of memoryview)
        The pickle, and the memory of tensors and arrays, not copied: do not change it until it has been sent.
    """
    try:
        return _pack(_Pickler, thing)
    except Exception:  # for example a class of a script, which only cloudpickle can send
        return _pack(_CloudPickler, thing)


def _pack(pickler: Callable[..., pickle.Pickler], thing: Any) -> tuple[bytes, list[memoryview]]:
    buffers: list[memoryview] = []

    def beside(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # not contiguous
            return True
        if raw.nbytes < _IN_PICKLE:
            return True
        buffers.append(raw)
        return False

    memory = BytesIO()
    pickler(memory, 5, buffer_callback=beside).dump(thing)
    return memory.getvalue(), buffers


def unpack(parcel: Parcel) -> Any:
    """Unpickle a parcel, whose tensors and arrays use the received memory. Raises the exception in it, if any."""
    thing = pickle.loads(parcel.pickle, buffers=parcel.buffers)
    if parcel.status != Status.OK:
        reraise(thing)
    return thing


def pack_exception(where: str) -> bytes:
    """Pickle the exception that is being handled, with its traceback, to be raised elsewhere as torch does."""
    wrapper = ExceptionWrapper(where=where)  # type: ignore[no-untyped-call]
    try:
        return bytes(cloudpickle.dumps(wrapper))
    except Exception:  # an exception may hold anything
        wrapper.exc_type = RuntimeError
        return bytes(cloudpickle.dumps(wrapper))


def reraise(wrapper: Any) -> NoReturn:
    """Raise the exception that `pack_exception` packed."""
    wrapper.reraise()
    raise AssertionError("reraise() returned")


class _Pickler(pickle.Pickler):
    """Pickles tensors as buffers; torch itself would copy their memory into the pickle."""

    def reducer_override(self, thing: Any) -> Any:
        return _reduce(thing) if type(thing) is torch.Tensor and _plain(thing) else NotImplemented


class _CloudPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """The same for objects that only cloudpickle can send; slower."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is torch.Tensor and _plain(thing):
            return _reduce(thing)
        return super().reducer_override(thing)


def _plain(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.requires_grad
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor.is_nested
        and tensor.numel() > 0
    )


def _reduce(tensor: torch.Tensor) -> tuple[Callable[..., torch.Tensor], tuple[Any, ...]]:
    if not (tensor.is_contiguous() or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))):
        tensor = tensor.contiguous()
    flat = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return _tensor, (pickle.PickleBuffer(flat.numpy().data), dtype, tuple(tensor.shape), tensor.stride())


def _tensor(memory: Any, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(memory, dtype=getattr(torch, dtype)).as_strided(shape, stride)
