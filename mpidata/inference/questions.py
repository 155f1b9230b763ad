"""Questions of solvers: what their parcels say, and the answers to them, as tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from mpidata.dtypes import numpy_dtype
from mpidata.errors import MpidataError
from mpidata.native import constants, structures

__all__ = ["Array", "Question", "Shape", "read_shape", "split_rows", "tensors_of"]

_MIXED = "Use one build of mpidata for the whole job."


class Array(NamedTuple):
    """An array of a question, but for its rows."""

    name: str
    dtype: torch.dtype
    stored: np.dtype[Any]
    row: tuple[int, ...]


class Shape(NamedTuple):
    """What a question is about; questions that differ in `rows` alone go into one call of the function."""

    rows: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    input_bytes: list[int]

    @property
    def kind(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """What questions that are joined have in common."""
        return self.inputs, self.outputs


class Question(NamedTuple):
    """A question that has come: who asks, its number, what it is about, and its parts; the first describes it."""

    peer: int
    number: int
    shape: Shape
    memory: bytearray | memoryview
    offsets: list[int]
    sizes: list[int]

    @property
    def rows(self) -> int:
        """Rows of each of its arrays."""
        return self.shape.rows


def read_shape(text: bytes) -> Shape:
    """Read the description of a question, its first part; raises MpidataError if it is none."""
    head, one = structures.Description, structures.Described
    if len(text) < ctypes.sizeof(head):
        raise MpidataError(f"A question is described by {len(text)} bytes, too few. {_MIXED}")
    told = head.from_buffer_copy(text)
    counts = told.n_in, told.n_out
    size = ctypes.sizeof(head) + sum(counts) * ctypes.sizeof(one)
    if told.magic != constants.QUESTION_MAGIC or min(counts) < 1 or told.rows < 0 or size != len(text):
        raise MpidataError(f"A question is described by {len(text)} bytes that are no description. {_MIXED}")
    places = range(ctypes.sizeof(head), size, ctypes.sizeof(one))
    arrays = [_array_of(one.from_buffer_copy(text, at), told.rows) for at in places]
    inputs = tuple(arrays[: told.n_in])
    sizes = [array.stored.itemsize * told.rows * math.prod(array.row) for array in inputs]
    return Shape(told.rows, inputs, tuple(arrays[told.n_in :]), sizes)


def _array_of(described: ctypes.Structure, rows: int) -> Array:
    names = {dtype.number: name for name, dtype in constants.DTYPES.items()}
    name = described.name.decode(errors="replace")
    dtype, extents = names.get(described.dtype), tuple(described.shape[: max(0, described.ndim)])
    if dtype is None or not 1 <= described.ndim <= constants.MAX_NDIM or extents[0] != rows or min(extents) < 0:
        raise MpidataError(f"Array {name!r} of a question is described wrongly. {_MIXED}")
    stored = np.dtype(np.uint8) if dtype == "bool" else numpy_dtype(dtype)
    return Array(name, getattr(torch, dtype), stored, extents[1:])


def tensors_of(question: Question) -> dict[str, torch.Tensor]:
    """Make tensors over the memory of a question's arrays, [rows, ...] each; bools are copied."""
    rows, inputs, _, sizes = question.shape
    if question.sizes[1:] != sizes:
        raise MpidataError(f"Arrays of a question came with {question.sizes[1:]} bytes, not {sizes}. {_MIXED}")
    found: dict[str, torch.Tensor] = {}
    for (name, dtype, stored, row), at in zip(inputs, question.offsets[1:], strict=True):
        # torch.frombuffer, and a view of what it makes, would take four times as long.
        tensor = torch.from_numpy(np.ndarray((rows, *row), stored, question.memory, at))
        if dtype == torch.bool:
            tensor = tensor.ne(0)
        elif tensor.dtype != dtype:
            tensor = tensor.view(dtype)
        found[name] = tensor
    return found


def split_rows(
    outputs: Mapping[str, torch.Tensor], wanted: tuple[Array, ...], first: int, end: int
) -> list[torch.Tensor]:
    """Give rows [first, end) of the outputs that a question wants, contiguous, in its order."""
    return [outputs[array.name][first:end] for array in wanted]
