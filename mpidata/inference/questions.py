"""Questions of solvers: what their parcels say, and the answers to them, as tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import NamedTuple

import torch

from mpidata.errors import MpidataError
from mpidata.native import constants, structures

__all__ = ["Array", "Question", "Shape", "read_shape", "split_rows", "tensors_of"]

_MIXED = "Use one build of mpidata for the whole job."


class Array(NamedTuple):
    """An array of a question, but for its rows."""

    name: str
    dtype: torch.dtype
    is_bool: bool
    row: tuple[int, ...]
    row_bytes: int


class Shape(NamedTuple):
    """What a question is about; questions that differ in `rows` alone go into one call of the function."""

    rows: int
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]

    @property
    def kind(self) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """What questions that are joined have in common."""
        return self.inputs, self.outputs


class Question(NamedTuple):
    """A question that has come: who asks, under which number, what it is about, and its parts in memory."""

    peer: int
    number: int
    shape: Shape
    parts: list[memoryview]

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
    return Shape(told.rows, tuple(arrays[: told.n_in]), tuple(arrays[told.n_in :]))


def _array_of(described: ctypes.Structure, rows: int) -> Array:
    names = {dtype.number: name for name, dtype in constants.DTYPES.items()}
    name = described.name.decode(errors="replace")
    dtype, extents = names.get(described.dtype), tuple(described.shape[: max(0, described.ndim)])
    if dtype is None or not 1 <= described.ndim <= constants.MAX_NDIM or extents[0] != rows or min(extents) < 0:
        raise MpidataError(f"Array {name!r} of a question is described wrongly. {_MIXED}")
    own: torch.dtype = getattr(torch, dtype)
    return Array(name, own, dtype == "bool", extents[1:], own.itemsize * math.prod(extents[1:]))


def tensors_of(question: Question) -> dict[str, torch.Tensor]:
    """Make tensors over the memory of a question's arrays, [rows, ...] each; bools are copied."""
    rows = question.rows
    found: dict[str, torch.Tensor] = {}
    for array, part in zip(question.shape.inputs, question.parts[1:], strict=True):
        if len(part) != rows * array.row_bytes:
            raise MpidataError(f"Array {array.name!r} of a question came with {len(part)} bytes. {_MIXED}")
        if not len(part):
            tensor = torch.empty((rows, *array.row), dtype=array.dtype, device="cpu")
        elif array.is_bool:
            tensor = torch.frombuffer(part, dtype=torch.uint8).ne(0).view(rows, *array.row)
        else:
            tensor = torch.frombuffer(part, dtype=array.dtype).view(rows, *array.row)
        found[array.name] = tensor
    return found


def split_rows(
    outputs: Mapping[str, torch.Tensor], wanted: tuple[Array, ...], first: int, end: int
) -> list[torch.Tensor]:
    """Give rows [first, end) of the outputs that a question wants, contiguous, in its order."""
    return [outputs[array.name][first:end] for array in wanted]
