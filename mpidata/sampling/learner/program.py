"""The program of the learner: it joins the job, and runs the sampler for the scheduler."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, Protocol

from mpidata.config import load_job
from mpidata.errors import MpidataError, unforeseen
from mpidata.native import constants
from mpidata.native.library import check
from mpidata.native.loading import load_checked
from mpidata.native.uncaught import end_on_exception
from mpidata.run.failsafe_output import keep_printing
from mpidata.run.folder import RunFolder
from mpidata.sampling.learner.local_sampler import Begun, LocalSampling, Sampling
from mpidata.sampling.learner.over_mpi import LEAVE, AskedOverMpi
from mpidata.sampling.learner.published import Contents
from mpidata.sampling.learner.remote_sampler import Answer, Question

__all__ = ["Worker", "main", "serve"]

# Interval of checks whether to leave, while the sampler computes.
_LOOK_S = 0.05
_IDLE_S = 0.2


class Asked(Protocol):
    """The source of questions; the methods of `AskedOverMpi`."""

    def next(self, timeout_s: float) -> tuple[int, Question] | object | None:
        """Take the next question and its number: None if none arrives in time, LEAVE if this rank is to leave."""

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a question."""

    def works_at(self, what: str) -> None:
        """Note what this rank does now, in case it dies."""


class Worker:
    """The sampler, in its own thread, so that this rank can leave while the sampler computes.

    Parameters
    ----------
    sampling : Sampling
        The sampler, which is called only in that thread.

    Attributes
    ----------
    answers : queue.SimpleQueue
        The numbers and answers of questions that it has finished.
    open : int
        Number of answers that are still to be taken from `answers`.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._published: Contents | None = None
        self._questions: queue.SimpleQueue[tuple[int, Question]] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self.open = 0
        threading.Thread(target=self._work, name="sampler", daemon=True).start()

    def ask(self, number: int, question: Question) -> None:
        """Queue a question, after the earlier ones."""
        self.open += 1
        self._questions.put((number, question))

    def _work(self) -> None:
        while True:
            number, question = self._questions.get()
            self.answers.put((number, self._answer(question)))

    def _answer(self, question: Question) -> Answer:
        sampling = self._sampling
        try:
            result = self._call(question)
        except MpidataError as error:
            traceback.print_exc()
            return Answer(None, None, False, str(error))
        except BaseException as error:
            traceback.print_exc()
            return Answer(None, None, False, unforeseen("The learner", error, "its log"))
        return Answer(result, sampling.state, sampling.takes_published)

    def _call(self, question: Question) -> Any:
        if question.what == "begin":
            return self._sampling.begin(Begun(*question.arguments))
        if question.what == "draw":
            drawn = self._sampling.draw(*question.arguments)
            return drawn.table, drawn.more
        self._published = question.contents or self._published
        ids, parameters, losses = question.arguments
        return self._sampling.observe(ids, parameters, losses, self._published)


def serve(asked: Asked, worker: Worker) -> bool:
    """Pass questions to the sampler and answers back until this rank is to leave; returns whether it is then idle."""
    while True:
        with contextlib.suppress(queue.Empty):
            number, answer = worker.answers.get(worker.open > 0, _LOOK_S)
            worker.open -= 1
            asked.answer(number, answer)
            if not worker.open:
                asked.works_at("")
        question = asked.next(0.0 if worker.open else _IDLE_S)
        if question is LEAVE:
            return not worker.open
        if isinstance(question, tuple):
            asked.works_at(f"{question[1].what} {question[0]}")
            worker.ask(*question)


def main() -> int:
    """Run the sampler until the scheduler lets this rank go; returns its exit status. Initialises MPI."""
    keep_printing()
    end_on_exception(None, lambda error, sentence: None)  # only its end informs the scheduler
    job = load_job(RunFolder(Path(os.environ["MPIDATA_RUN"])).job)
    from mpi4py import MPI

    library = load_checked()
    check(library, library.mpidata_loader_open(MPI.COMM_WORLD.py2f(), constants.ROLE_LEARNER))
    check(library, library.mpidata_loader_begin())
    asked = AskedOverMpi(library)
    idle = serve(asked, Worker(LocalSampling(job)))
    asked.close()
    if not idle:  # the sampler's result is not needed, and Python's end would wait for it, or crash it
        MPI.Finalize()
        sys.stdout.flush()
        os._exit(0)
    return 0
