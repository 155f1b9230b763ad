"""Questions through the library: the memory of small ones, and tensors that a function keeps."""

import ctypes
from typing import Any

import numpy as np
import torch

from mpidata.inference.over_mpi import LEAVE, Asked
from mpidata.inference.questions import Question, tensors_of
from mpidata.native.constants import END, ERR_AGAIN, PIECE_SMALL, SUCCESS
from tests.unit.inference.test_questions import described, description


class Library:
    """Returns questions of one array as the library does; records the answers and the memory that was offered."""

    def __init__(self, *coming: np.ndarray[Any, Any]) -> None:
        self.coming, self.given = list(coming), []
        self.answers: list[tuple[int, list[bytes], int]] = []
        self.offered: list[tuple[int, int]] = []
        self.sent: list[int] = []

    def mpidata_loader_next_into(self, taken: Any, address: int, room: int, timeout_s: float) -> int:
        self.offered.append((address, room))
        if not self.coming:
            return END
        values, taken = self.coming.pop(0), taken._obj
        text = description(
            len(values), [described("x", "float32", *values.shape)], [described("y", "float32", *values.shape)]
        )
        begin = 64 if room else 0
        offsets = [begin, begin + -(-len(text) // 64) * 64]
        memory = bytearray(offsets[1] + values.nbytes)
        numbers = np.array([*offsets, len(text), values.nbytes], np.int64)
        memory[offsets[0] : offsets[0] + len(text)] = text
        memory[offsets[1] :] = values.tobytes()
        taken.peer, taken.number, taken.n_parts, taken.more = 5, len(self.coming), 2, 0
        if room:
            memory[: numbers.nbytes] = numbers.tobytes()
            ctypes.memmove(address, bytes(memory), len(memory))
            taken.parcel, taken.bytes = None, begin + len(text)
        else:
            self.given.append((memory, numbers))
            taken.parcel, taken.bytes = len(self.given), len(memory)
            taken.memory = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            first = numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
            second = numbers[2:].ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
            taken.offsets, taken.sizes = first, second
        return SUCCESS

    def mpidata_parcel_release(self, parcel: int) -> None:
        """Keep the parcel until the test ends."""

    def mpidata_loader_answer(self, to: Any, status: int, n: int, addresses: Any, sizes: Any, ticket: int) -> int:
        parts = [ctypes.string_at(addresses[i], sizes[i]) for i in range(n)]
        self.answers.append((to._obj.number, parts, ticket))
        return SUCCESS

    def mpidata_loader_sent(self, ticket: Any) -> int:
        if not self.sent:
            return ERR_AGAIN
        ticket._obj.value = self.sent.pop(0)
        return SUCCESS


def rows(*values: float) -> np.ndarray[Any, Any]:
    return np.array([values], np.float32)


def take(asked: Asked) -> Question:
    found = asked.next(0.2)
    assert isinstance(found, Question)
    return found


def answer(asked: Asked, version: int = 3) -> None:
    """Take a question and answer it with its own input, keeping no tensor."""
    question = take(asked)
    asked.answer(question, version, [tensors_of(question)["x"]])


def test_small_questions_reuse_the_same_memory() -> None:
    library = Library(rows(1, 2), rows(3, 4), rows(5, 6, 7))
    asked = Asked(library)
    for _ in range(3):
        answer(asked)
    assert len({address for address, _ in library.offered}) == 1 and all(room for _, room in library.offered)
    version = np.int64(3).tobytes()
    sent = [[version, values.tobytes()] for values in (rows(1, 2), rows(3, 4), rows(5, 6, 7))]
    assert [parts for _, parts, _ in library.answers] == sent
    assert all(ticket < 0 for _, _, ticket in library.answers)
    assert asked.next(0.2) is LEAVE


def test_kept_tensors_are_not_overwritten() -> None:
    library = Library(rows(1, 2), rows(3, 4), rows(5, 6), rows(7, 8))
    asked, kept = Asked(library), []
    for _ in range(3):
        question = take(asked)
        inputs = tensors_of(question)
        kept.append(inputs["x"][:, 1:])  # a view also holds the memory
        asked.answer(question, 0, [2 * inputs["x"]])
        del inputs, question
    assert [view.item() for view in kept] == [2, 4, 6]
    assert len({address for address, _ in library.offered}) == 3
    kept.clear()
    answer(asked)
    assert library.offered[3] == library.offered[2]  # nothing holds the memory now
    assert np.frombuffer(library.answers[3][1][1], np.float32).tolist() == [7, 8]


def test_a_question_that_waits_keeps_its_memory() -> None:
    library = Library(rows(1, 2), rows(3, 4), rows(5, 6))
    asked = Asked(library)
    first, second = take(asked), take(asked)
    assert [room > 0 for _, room in library.offered] == [True, False]
    assert tensors_of(first)["x"].tolist() == [[1, 2]] and tensors_of(second)["x"].tolist() == [[3, 4]]
    asked.answer(second, 0, [torch.zeros(1, 2)])
    asked.answer(first, 0, [tensors_of(first)["x"]])
    answer(asked)
    assert [room > 0 for _, room in library.offered] == [True, False, True]
    assert [number for number, _, _ in library.answers] == [1, 2, 0]


def test_large_answer_is_kept_until_it_is_sent() -> None:
    library = Library(np.zeros((1, PIECE_SMALL // 4), np.float32), rows(1))
    asked = Asked(library)
    asked._place.room = lambda: 0  # no memory would be offered for a question this large
    large = take(asked)
    asked.answer(large, 0, [torch.ones(1, PIECE_SMALL // 4)])
    ((_, parts, ticket),) = library.answers
    assert ticket > 0 and parts[1] == np.ones(PIECE_SMALL // 4, np.float32).tobytes() and asked._kept
    library.sent.append(ticket)
    assert asked.next(0.2) is not LEAVE and asked.next(0.2) is LEAVE and not asked._kept
