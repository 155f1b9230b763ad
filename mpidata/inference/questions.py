"""Questions of solvers: the contents of their parcels, and their arrays as tensors."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import torch

from mpidata.dtypes import numpy_dtype
from mpidata.errors import MpidataError
from mpidata.native import constants, structures

__all__ = ["Array", "Question", "Shape", "arrays_in", "read_shape", "tensors_of"]

_MIXED = "Use one build of mpidata for the whole job."


class Array(NamedTuple):
    """An array of a question, without its number of rows; `stored` is its dtype in numpy, which lacks bfloat16."""

    name: str
    dtype: torch.dtype
    stored: np.dtype[Any]
    row: tuple[int, ...]


class Shape(NamedTuple):
    """Description of a question; questions that differ only in `rows` are joined in one call of the function."""

    rows: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]
    names: tuple[str, ...]
    """Of the inputs; empty if some are stored differently than in torch."""

    @property
    def kind(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The same for questions that can be joined."""
        return self.inputs, self.outputs


@dataclasses.dataclass(slots=True)
class Question:
    """A received question: its sender and number, its description, and its inputs as they are stored."""

    peer: int
    number: int
    shape: Shape
    arrays: list[np.ndarray[Any, Any]]

    @property
    def rows(self) -> int:
        """Rows of each of its arrays."""
        return self.shape.rows


@functools.lru_cache(1024)
def read_shape(text: bytes) -> Shape:
    """Read the description of a question, its first part; raises MpidataError if it is invalid."""
    head, one = structures.Description, structures.Described
    if len(text) < ctypes.sizeof(head):
        raise MpidataError(f"The description of a question has {len(text)} bytes, too few. {_MIXED}")
    told = head.from_buffer_copy(text)
    counts = told.n_in, told.n_out
    size = ctypes.sizeof(head) + sum(counts) * ctypes.sizeof(one)
    if told.magic != constants.QUESTION_MAGIC or min(counts) < 1 or told.rows < 0 or size != len(text):
        raise MpidataError(f"The description of a question, {len(text)} bytes, is invalid. {_MIXED}")
    places = range(ctypes.sizeof(head), size, ctypes.sizeof(one))
    arrays = tuple(_array_of(one.from_buffer_copy(text, at), told.rows) for at in places)
    sizes = tuple(array.stored.itemsize * told.rows * math.prod(array.row) for array in arrays)
    n = told.n_in
    names = tuple(array.name for array in arrays[:n])
    converted = any(array.dtype in (torch.bool, torch.bfloat16) for array in arrays[:n])
    return Shape(told.rows, arrays[:n], arrays[n:], sizes[:n], sizes[n:], () if converted else names)


def _array_of(described: ctypes.Structure, rows: int) -> Array:
    names = {dtype.number: name for name, dtype in constants.DTYPES.items()}
    name = described.name.decode(errors="replace")
    dtype, extents = names.get(described.dtype), tuple(described.shape[: max(0, described.ndim)])
    if dtype is None or not 1 <= described.ndim <= constants.MAX_NDIM or extents[0] != rows or min(extents) < 0:
        raise MpidataError(f"The description of array {name!r} of a question is invalid. {_MIXED}")
    stored = np.dtype(np.uint8) if dtype == "bool" else numpy_dtype(dtype)
    return Array(name, getattr(torch, dtype), stored, extents[1:])


def arrays_in(
    shape: Shape, memory: bytearray | memoryview, offsets: list[int], sizes: list[int]
) -> list[np.ndarray[Any, Any]]:
    """Return arrays over the inputs of a question, [rows, ...] each; raises MpidataError if their sizes differ."""
    wanted = list(shape.input_bytes)
    if sizes[1:] != wanted:
        raise MpidataError(f"Arrays of a question have {sizes[1:]} bytes, not {wanted}. {_MIXED}")
    places = zip(shape.inputs, offsets[1:], strict=True)
    return [np.ndarray((shape.rows, *array.row), array.stored, memory, at) for array, at in places]


def tensors_of(question: Question) -> dict[str, torch.Tensor]:
    """Return tensors over the inputs of a question, [rows, ...] each; bools are copied."""
    # torch.frombuffer and a view of its result would take four times as long.
    if question.shape.names:
        return dict(zip(question.shape.names, map(torch.from_numpy, question.arrays), strict=True))
    named = zip(question.shape.inputs, question.arrays, strict=True)
    return {array.name: _as(array.dtype, torch.from_numpy(stored)) for array, stored in named}


def _as(dtype: torch.dtype, stored: torch.Tensor) -> torch.Tensor:
    if stored.dtype is dtype:
        return stored
    return stored.ne(0) if dtype is torch.bool else stored.view(dtype)
