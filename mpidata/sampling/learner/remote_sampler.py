"""A sampler on a learner: its thread asks, and the scheduler's thread passes on questions and answers."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import MpidataError
from mpidata.sampling.drawing import Drawn
from mpidata.sampling.learner.local_sampler import Begun, Losses
from mpidata.sampling.learner.published import Contents

__all__ = ["Answer", "Learners", "Question", "RemoteSampling"]

# How long to wait for the thread, which asks at once when it has something to do.
_PATIENCE_S = 0.02


class Question(NamedTuple):
    """A call for the learner: a method of `Sampling`, its arguments, and the version to observe if it is new."""

    what: str
    arguments: tuple[Any, ...]
    contents: Contents | None = None


class Answer(NamedTuple):
    """The result of a call, and `state` and `takes_published` after it; or why it has failed."""

    result: Any
    state: str | None
    takes_published: bool
    error: str = ""


class Learners(Protocol):
    """The connection to the learner, for the scheduler's thread; no method blocks."""

    def teach(self, number: int, question: Question) -> None:
        """Send it a question with this number."""

    def learnt(self) -> tuple[int, int, Answer] | None:
        """Take an answer: learner, number of the question, answer; None if there is none."""


class RemoteSampling:
    """The sampler on the rank that `serves` names; the methods of `Sampling`, for the sampler's thread.

    One question is open at a time. If its learner is lost, the next one starts from the state of the last answer, and
    receives the unanswered question again.

    Parameters
    ----------
    learners : Learners
        The connection to the learner.

    Attributes
    ----------
    needed : bool
        Whether more simulations are to be drawn.
    forgot : bool
        Whether a learner has started that does not know the earlier losses, because the sampler has no state.
    """

    def __init__(self, learners: Learners) -> None:
        self.takes_published = False
        self.state: str | None = None
        self.needed = True
        self.forgot = False
        self._learners = learners
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._open: Question | None = None
        self._number = 0
        self._serving = -1
        self._has_begun = False  # the learner that serves
        self._state: str | None = None  # where the next learner starts, and what was drawn after that
        self._rows: list[NDArray[np.float64]] = []
        self._has: Contents | None = None  # what the learner that serves has received

    # In the sampler's thread

    def begin(self, begun: Begun) -> None:
        """Create the sampler, and restore its position."""
        self._ask(Question("begin", begun))

    def observe(
        self, ids: NDArray[np.int64], parameters: NDArray[np.float64], losses: Losses, published: Contents | None
    ) -> None:
        """Pass losses to the sampler."""
        self._ask(Question("observe", (ids, parameters, losses), published))

    def draw(self, count: int) -> Drawn:
        """Let the sampler draw `count` simulations."""
        return Drawn(*self._ask(Question("draw", (count,))))

    def rest(self) -> None:
        """Note that the thread has finished, and asks nothing more for now."""
        self._questions.put(None)

    def _ask(self, question: Question) -> Any:
        self._questions.put(question)
        answer = self._answers.get()
        if answer.error:
            raise MpidataError(answer.error)
        return answer.result

    # In the scheduler's thread

    def serves(self, learner: int) -> None:
        """Ask this learner from now on; send it the open question of the previous one, and where to start."""
        self._serving, self._has, self._has_begun = learner, None, False
        self.forgot = self.state is None and self._number > 1
        if self._open is not None:
            self._send(self._open)

    def lost(self, learner: int) -> None:
        """If this learner serves, ask none until the next one serves."""
        if learner == self._serving:
            self._serving = -1

    def turn(self, busy: Callable[[], bool]) -> None:
        """Pass on answers and questions. `busy`: whether the thread has something to do."""
        while (came := self._learners.learnt()) is not None:
            self._take(*came)
        deadline = time.monotonic() + _PATIENCE_S
        while self._open is None:
            try:
                left = deadline - time.monotonic()
                question = self._questions.get(timeout=left) if busy() and left > 0 else self._questions.get_nowait()
            except queue.Empty:
                return
            if question is not None:
                self._open, self._number = question, self._number + 1
                if question.what == "begin":
                    self._state, self._rows = question.arguments[0], [question.arguments[1]]
                if self._serving >= 0:
                    self._send(question)

    def _send(self, question: Question) -> None:
        if not self._has_begun and question.what != "begin":
            self._learners.teach(0, Question("begin", Begun(self._state, np.concatenate(self._rows))))
        self._has_begun = True
        known = question.contents is not None and question.contents is self._has
        if question.contents is not None:
            self._has = question.contents
        self._learners.teach(self._number, question._replace(contents=None) if known else question)

    def _take(self, learner: int, number: int, answer: Answer) -> None:
        if learner != self._serving or self._open is None or (number != self._number and not answer.error):
            return  # from a lost learner, or only the answer to its new start
        self.takes_published, self.state = answer.takes_published, answer.state
        if self._open.what == "draw" and not answer.error:
            self._rows.append(answer.result[0])
        if answer.state is not None:
            self._rows = [self._rows[0][:0]]
        self._state = answer.state
        self._open = None
        self._answers.put(answer)
