"""The main loop of an inference rank: joins questions, calls the function, and answers them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import torch

from mpidata.inference.function import Function
from mpidata.inference.over_mpi import LEAVE
from mpidata.inference.questions import Question, tensors_of
from mpidata.inference.weights import Weights

__all__ = ["Serving"]

# Time after which waiting for weights is reported: a script that trains before it publishes may take longer.
PATIENCE_S = 10.0


class Questions(Protocol):
    """Source of questions; the methods of `Asked`."""

    more: bool
    """Whether another one waits after the last one taken."""

    def next(self, timeout_s: float) -> Question | object | None:
        """Take the next one."""

    def answer(self, question: Question, version: int, outputs: list[torch.Tensor]) -> None:
        """Answer one."""


class Serving:
    """Answers questions.

    Parameters
    ----------
    asked : Asked
        Source of the questions.
    function : Function
        Computes the answers.
    weights : Weights
        For a function that takes weights: nothing is answered before there are some.
    batch : int
        Largest number of rows of a call.
    wait_s : float
        Time to wait for more rows.
    say : callable
        Prints a sentence for the user.
    """

    def __init__(
        self,
        asked: Questions,
        function: Function,
        weights: Weights,
        batch: int,
        wait_s: float,
        say: Callable[[str], object],
    ) -> None:
        self._asked = asked
        self._function = function
        self._weights = weights
        self._batch = batch
        self._wait_s = wait_s
        self._say = say
        self._waits_since: float | None = None  # for weights
        self._told = False
        self._waiting: deque[Question] = deque()
        self._left = False

    def serve(self) -> None:
        """Answer until this rank must leave, without gradients."""
        with torch.no_grad():  # once: torch.inference_mode around each call would take 3 us of it
            while not self._left:
                self._serve_next()

    def _serve_next(self) -> None:
        found = self._asked.next(-1.0 if self._waiting else 0.2)
        self._weights.take_newer()
        if (
            isinstance(found, Question)
            and not (self._asked.more or self._waiting or self._wait_s)
            and found.shape.rows
            and self._may_answer
        ):
            self._answer_one(found)  # at once, because a solver waits
            return
        self._keep(found)
        if self._waiting and self._may_answer:
            self._gather()
            self._answer(self._next_batch())
        elif self._waiting:
            self._wait_for_weights()

    def _wait_for_weights(self) -> None:
        self._take(0.2)
        self._waits_since = self._waits_since or time.monotonic()
        if self._told or time.monotonic() - self._waits_since < PATIENCE_S:
            return
        self._told = True
        self._say(
            f"Solvers wait for an answer of {self._function.name}, which takes weights, but there have been none for "
            f"{PATIENCE_S:g} s. Name a file of weights in inference.weights, or call mpidata.publish in the training "
            "script before the first batch."
        )

    @property
    def _may_answer(self) -> bool:
        return self._weights.there or not self._function.takes_weights

    def _take(self, timeout_s: float) -> bool:
        """Take a question, if one arrives in time."""
        return self._keep(self._asked.next(timeout_s))

    def _keep(self, found: object) -> bool:
        if isinstance(found, Question):
            self._waiting.append(found)
            return True
        self._left |= found is LEAVE
        return False

    def _gather(self) -> None:
        """Take all waiting questions, and wait briefly for more while there are few rows."""
        while self._asked.more and self._take(-1.0):  # a check in vain would delay waiting solvers
            pass
        if not self._wait_s:
            return
        deadline = time.monotonic() + self._wait_s
        while not self._left and self._rows_of_first() < self._batch and (left := deadline - time.monotonic()) > 0:
            if not self._take(left):
                self._weights.take_newer()  # newer weights may be the reason for the return

    def _rows_of_first(self) -> int:
        """Return the number of rows that fit into one call with the first question."""
        kind = self._waiting[0].shape.kind
        return sum(question.rows for question in self._waiting if question.shape.kind == kind)

    def _next_batch(self) -> list[Question]:
        """Remove the first question, and those of its kind that fit into the same call, in order."""
        first = self._waiting.popleft()
        if not self._waiting:
            return [first]
        chosen, rows, rest = [first], first.rows, deque[Question]()
        for question in self._waiting:
            if question.shape.kind == first.shape.kind and rows + question.rows <= self._batch:
                chosen.append(question)
                rows += question.rows
            else:
                rest.append(question)
        self._waiting = rest
        return chosen

    def _answer(self, questions: list[Question]) -> None:
        if len(questions) == 1 and questions[0].rows:
            self._answer_one(questions[0])
            return
        outputs = questions[0].shape.outputs
        rows = sum(question.rows for question in questions)
        each = [tensors_of(question) for question in questions]
        if rows:
            joined = {name: torch.cat([one[name] for one in each]) for name in each[0]}
            found = self._function(joined, self._weights.tensors, outputs, rows)
        else:
            found = [torch.empty((0, *array.row), dtype=array.dtype, device="cpu") for array in outputs]
        first = 0
        for question in questions:
            end = first + question.rows
            self._asked.answer(question, self._weights.version, [tensor[first:end] for tensor in found])
            first = end

    def _answer_one(self, question: Question) -> None:
        """Answer a single question without copies, and quickly, because a solver waits."""
        shape = question.shape
        found = self._function(tensors_of(question), self._weights.tensors, shape.outputs, shape.rows)
        self._asked.answer(question, self._weights.version, found)
