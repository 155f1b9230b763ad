"""A sampler that learns while the job runs: it observes losses, and draws parameters, in its own thread."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.checkpoint.files import path_of, read_scheduler
from mpidata.config import Job, load_job
from mpidata.errors import MpidataError, unforeseen
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.plan.parameters import texts_of
from mpidata.sampling.learner.local_sampler import Begun, LocalSampling, Sampling
from mpidata.sampling.learner.published import Asking, Contents, Newest
from mpidata.sampling.learner.remote_sampler import Learners, RemoteSampling
from mpidata.sampling.losses.sums import Sums
from mpidata.sampling.losses.table import LossTable
from mpidata.sampling.parameters_file import append_rows
from mpidata.sampling.queue import Queue

__all__ = ["Learner", "make_learner"]

_OBSERVE_EVERY_S = 1.0
# Most samplers draw within this time, so that waiting groups get their simulations at once.
_PATIENCE_S = 0.02
_SLOW_S = 30.0


class Learner:
    """Lets a sampler draw one generation after the other, as simulations are dispatched.

    Parameters
    ----------
    job : Job
        A job with a sampler that learns.
    run : RunFolder
        The draws are written to its parameters.csv before they are used.
    table : ndarray, float64, shape (simulations + validation, number of parameters)
        Receives the draws.
    drawn : int
        Number of simulations to train on that already have parameters.
    kept : dict, optional
        The result of `state`, from the checkpoint from which the run was resumed.
    newest : Newest, optional
        The newest published version, for a sampler that takes it.
    elsewhere : RemoteSampling, optional
        The sampler, if it runs on a learner.

    Notes
    -----
    Not thread-safe. The sampler is called only in its own thread, or on a learner.
    """

    def __init__(
        self,
        job: Job,
        run: RunFolder,
        table: NDArray[np.float64],
        drawn: int,
        kept: dict[str, Any] | None = None,
        newest: Newest | None = None,
        elsewhere: RemoteSampling | None = None,
    ) -> None:
        self._job, self._run, self._table = job, run, table
        self._drawn = drawn
        self._kept = kept or {"drawn": 0, "state": None}
        self._remembered: tuple[int, str | None] = self._kept["drawn"], self._kept["state"]
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._drawing, self._observing = False, True  # until the sampler has begun
        self._has_drawn = threading.Event()
        self._next, self._asked = 0.0, 0.0
        self._said_slow = False
        self._error: MpidataError | None = None
        self._newest = newest
        self.elsewhere = elsewhere
        self._sampling: Sampling = LocalSampling(job) if elsewhere is None else elsewhere

    def start(self, waiting: Queue) -> None:
        """Start; from now on, only simulations with parameters can be taken from `waiting`."""
        waiting.draw(self._drawn)
        threading.Thread(target=self._work, name="sampler", daemon=True).start()

    def turn(self, now: float, waiting: Queue, losses: LossTable) -> bool:
        """Do what is due; to be called often.

        Parameters
        ----------
        now : float
            The time in seconds of a monotonic clock.
        waiting : Queue
            Learns how many are drawn. If a simulation without parameters is needed, a generation is drawn.
        losses : LossTable
            The sampler observes the new losses, at most once a second.

        Returns
        -------
        bool
            Whether more simulations can be taken now.

        Raises
        ------
        MpidataError
            The sampler has failed, or what it has drawn cannot be written.

        Notes
        -----
        Waits for at most 20 ms, once for each generation.
        """
        if not self._observing and now >= self._next and losses.has_news and self._is_published_here():
            self._observing, self._next = True, now + _OBSERVE_EVERY_S
            published = self._newest.contents if self._newest is not None else None
            self._tasks.put(functools.partial(self._observe, losses.news(), published))
        if waiting.starved and not self._drawing and self._drawn == waiting.drawn:
            self._drawing, self._asked, self._said_slow = True, now, False
            self._has_drawn.clear()
            self._tasks.put(self._draw)
            if self.elsewhere is None:
                self._has_drawn.wait(_PATIENCE_S)
        if self.elsewhere is not None:
            self.elsewhere.needed = self._drawn < self._job.simulations
            if self.elsewhere.forgot:
                losses.tell_again()
                self.elsewhere.forgot = False
            self.elsewhere.turn(lambda: self._drawing or self._observing)
        if self._error is not None:
            raise self._error
        if self._drawn == waiting.drawn:
            return False
        waiting.draw(self._drawn)
        return True

    def _is_published_here(self) -> bool:
        """Whether the sampler needs no newer version than the one here; if not, it has been requested."""
        return self._newest is None or not self._sampling.takes_published or self._newest.is_here()

    def slow_s(self, now: float) -> float:
        """Return how many seconds groups have waited for the sampler, once in each long wait; else 0."""
        if not self._drawing or self._said_slow or now - self._asked < _SLOW_S:
            return 0.0
        self._said_slow = True
        return now - self._asked

    def state(self) -> dict[str, Any]:
        """Return for JSON: the sampler's pickled state, and how many simulations it had then drawn."""
        drawn, state = self._remembered
        return {"sampler": {"drawn": drawn, "state": state}}

    # In the sampler's thread

    def _work(self) -> None:
        try:
            before = self._kept["drawn"] if self._kept["state"] is not None else 0
            self._sampling.begin(Begun(self._kept["state"], self._table[before : self._drawn].copy()))
            self._remember(self._drawn)
            self._observing = False
            self._sampling.rest()
            while True:
                self._tasks.get()()
                self._sampling.rest()
        except MpidataError as error:
            self._error = error
        except Exception as error:
            self._error = MpidataError(unforeseen("The sampler's thread", error, "the log of rank 0"))

    def _observe(self, news: Sums, published: Contents | None) -> None:
        news = news[(news["simulation"] < self._drawn) & (news["count"] > 0)]
        if len(news):
            ids = news["simulation"].copy()
            means = {"mean": "sum", "excess": "excess", "difficulty": "difficulty"}
            losses = {name: news[of] / news["count"] for name, of in means.items()}
            losses |= {name: news[name].copy() for name in ("count", "max", "last", "not_finite")}
            parameters = self._table[ids, : len(self._job.parameter_names)]
            self._sampling.observe(ids, parameters, losses, published)
            self._remember(self._drawn)
        self._observing = False

    def _draw(self) -> None:
        first, last = self._drawn, min(self._drawn + self._job.generation, self._job.simulations)
        drawn = self._sampling.draw(last - first)
        names, texts = self._job.columns, texts_of(self._job)
        append_rows(self._run.parameters, first, drawn.table, drawn.more, names, texts)
        self._table[first:last] = drawn.table
        self._remember(last)
        self._drawn, self._drawing = last, False
        self._has_drawn.set()

    def _remember(self, drawn: int) -> None:
        if self._sampling.state is not None:
            self._remembered = drawn, self._sampling.state


def make_learner(
    run: RunFolder,
    plan: Plan,
    table: NDArray[np.float64],
    drawn: int,
    trainers: Asking | None = None,
    learners: Learners | None = None,
) -> Learner:
    """Create the learner of a run.

    Raises
    ------
    MpidataError
        The job file or the checkpoint cannot be read, or parameters.csv lacks simulations of the checkpoint.
    """
    kept = read_scheduler(path_of(run.checkpoints, plan.checkpoint)).get("sampler") if plan.checkpoint else None
    if kept is not None and not _makes_sense(kept, drawn):
        raise MpidataError(
            f"{run.parameters} lacks simulations of checkpoint {plan.checkpoint}, or the checkpoint is damaged. "
            f"Restore the file, or remove {path_of(run.checkpoints, plan.checkpoint)} and resume from the one before."
        )
    newest = Newest(trainers) if trainers is not None else None
    elsewhere = RemoteSampling(learners) if learners is not None and plan.learner else None
    return Learner(load_job(run.job), run, table, drawn, kept, newest, elsewhere)


def _makes_sense(kept: Any, drawn: int) -> bool:
    if not isinstance(kept, dict) or type(kept.get("drawn")) is not int or not 0 <= kept["drawn"] <= drawn:
        return False
    return kept.get("state") is None or isinstance(kept["state"], str)
