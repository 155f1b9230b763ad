"""The description of a question, and the tensors made of one."""

import struct
from typing import Any

import pytest
import torch

from mpidata.errors import MpidataError
from mpidata.inference.questions import Question, arrays_in, read_shape, tensors_of
from mpidata.native import constants, structures


def described(name: str, dtype: str, *shape: int) -> Any:
    """One array, as C writes it."""
    one = structures.Described(name=name.encode(), dtype=constants.DTYPES[dtype].number, ndim=len(shape))
    one.shape[: len(shape)] = shape
    return one


def description(rows: int, inputs: list[Any], outputs: list[Any]) -> bytes:
    """The first part of a question, as C writes it."""
    head = structures.Description(magic=constants.QUESTION_MAGIC, n_in=len(inputs), n_out=len(outputs), rows=rows)
    return b"".join(bytes(part) for part in (head, *inputs, *outputs))


GOOD = description(2, [described("x", "float32", 2, 3), described("b", "bool", 2)], [described("y", "bfloat16", 2, 1)])


def test_a_description_gives_names_dtypes_and_rows() -> None:
    shape = read_shape(GOOD)
    x, b = shape.inputs
    (y,) = shape.outputs
    assert (shape.rows, x.name, x.dtype, x.row) == (2, "x", torch.float32, (3,))
    assert b.dtype == torch.bool and b.row == () and y.dtype == torch.bfloat16 and y.row == (1,)
    assert shape.input_bytes == (24, 2) and shape.output_bytes == (4,)


def test_questions_with_different_row_counts_have_the_same_kind() -> None:
    other = description(
        5, [described("x", "float32", 5, 3), described("b", "bool", 5)], [described("y", "bfloat16", 5, 1)]
    )
    assert read_shape(other).kind == read_shape(GOOD).kind
    third = description(2, [described("x", "float32", 2, 4)], [described("y", "bfloat16", 2, 1)])
    assert read_shape(third).kind != read_shape(GOOD).kind


@pytest.mark.parametrize(
    "text",
    [
        b"",
        GOOD[:-1],
        b"\0" + GOOD[1:],
        description(-1, [described("x", "float32", 2)], [described("y", "float32", 2)]),
        description(3, [described("x", "float32", 2)], [described("y", "float32", 3)]),
        description(2, [], [described("y", "float32", 2)]),
        description(2, [described("x", "float32")], [described("y", "float32", 2)]),
        description(2, [described("x", "float32", 2, -1)], [described("y", "float32", 2)]),
    ],
)
def test_invalid_description_is_refused(text: bytes) -> None:
    with pytest.raises(MpidataError, match="Use one build of mpidata"):
        read_shape(text)


def question_in(memory: bytearray, text: bytes, offsets: list[int], sizes: list[int]) -> Question:
    shape = read_shape(text)
    return Question(3, 7, shape, arrays_in(shape, memory, offsets, sizes))


def test_tensors_share_memory_and_bools_are_made_valid() -> None:
    memory = bytearray(struct.pack("8x6f2B", *range(6), 0, 7))
    tensors = tensors_of(question_in(memory, GOOD, [0, 8, 32], [8, 24, 2]))
    assert tensors["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and tensors["b"].tolist() == [False, True]
    memory[8:12] = struct.pack("f", 9)
    assert tensors["x"][0, 0] == 9
    with pytest.raises(MpidataError, match=r"of a question have \[20, 2\] bytes, not \[24, 2\]"):
        question_in(memory, GOOD, [0, 8, 32], [8, 20, 2])


def test_bfloat16_tensor_is_made_from_its_bits() -> None:
    text = description(2, [described("x", "bfloat16", 2)], [described("y", "float32", 2)])
    bits = torch.tensor([1.5, -3.0], dtype=torch.bfloat16).view(torch.uint16).numpy()
    (tensor,) = tensors_of(question_in(bytearray(bits.tobytes()), text, [0, 0], [0, 4])).values()
    assert tensor.dtype == torch.bfloat16 and tensor.tolist() == [1.5, -3.0]


def test_question_without_rows_gives_tensors_without_rows() -> None:
    empty = description(0, [described("x", "float32", 0, 3)], [described("y", "float32", 0)])
    tensors = tensors_of(question_in(bytearray(), empty, [0, 0], [0, 0]))
    assert tensors["x"].shape == (0, 3)
