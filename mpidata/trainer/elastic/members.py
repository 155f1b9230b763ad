"""The trainers that live: one agreement a step, and what follows when one has died.

The agreement is MPIX_Comm_agree of ULFM (Bland et al., Post-failure recovery of MPI communication capability, 2013):
all who live learn whether all of them have what was reduced, so either all use it or none, whoever died meanwhile.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.trainer.elastic.numbers import without
from mpidata.trainer.elastic.points import reached

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.trainer.elastic.drawn import Drawn

__all__ = ["Attempt", "Change", "Members", "Place", "Shared"]

Place = tuple[int, int]
"""Epoch of a dataset, and how many of its batches were given out."""

_MOST_DATASETS = 16
_MOST_TRIES = 10
_YIELDS_S, _LONGEST_S, _TELLS_S, _ENDS_S = 2e-3, 5e-4, 1.0, 5.0


_left: list[MPI.Request] = []  # requests that do not end, with their memory


@dataclass(frozen=True)
class Change:
    """What has changed among the trainers between two steps.

    Attributes
    ----------
    rank : int
        Number of this trainer from now on, from 0.
    trainers, before : int
        How many there are, and how many there were.
    lost : tuple of int
        Numbers, from before, of those that have died.
    generation : int
        Counts the changes, from 1.
    """

    rank: int
    trainers: int
    before: int
    lost: tuple[int, ...]
    generation: int


class Shared(Protocol):
    """A dataset whose rows the trainers share."""

    def place(self) -> Place:
        """Where this trainer is."""

    def lose(self, lost: dict[int, Place], change: Change) -> None:
        """Deal out anew what these trainers, by their numbers before, had not trained on at their places."""


class Attempt:
    """Operations in a communicator, to be brought to their end together.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of those who take part. Where one of them has died, it is revoked, so that nobody waits in it any more.
    report : callable
        Told of long waits, in seconds, once a second, and of their ends: 0.
    """

    def __init__(self, communicator: MPI.Intracomm, report: Callable[[float], object]) -> None:
        self.communicator = communicator
        self._report = report
        self._requests: list[MPI.Request] = []
        self._failed = False

    def post(self, call: Callable[..., MPI.Request], *arguments: Any) -> None:
        """Begin an operation of the communicator; does nothing once one has failed."""
        from mpi4py import MPI

        if self._failed:
            return
        try:
            self._requests.append(call(*arguments))
        except MPI.Exception:
            self._fail()

    def wait(self) -> bool:
        """Wait until all have ended; False where any has failed."""
        ended = [_wait(request, self._report, self._is_broken, self._fail) for request in self._requests]
        return all(ended) and not self._failed

    def _is_broken(self) -> bool:
        failed = self.communicator.Get_failed()
        broken = self.communicator.Is_revoked() or failed.Get_size() > 0
        _free(failed)
        return broken

    def _fail(self) -> None:
        self._failed = True
        self.communicator.Revoke()


class Members:
    """The trainers of a job that goes on when one dies.

    A trainer's number is at first its rank among them; when one has died, the living one with the highest number takes
    its place.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of all trainers, for this object alone.
    report : callable
        As of `Attempt`.
    hand_over : callable
        Gets another communicator of those that live after each death, to keep.

    Attributes
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of those that live.
    numbers : list of int
        By number, the rank at the start of the job.
    generation : int
        Counts the changes.
    drawn : Drawn or None
        What was drawn from a stream, which the trainers tell one another with each step.

    Notes
    -----
    For the thread of the training script. The methods that say so are collective over the living trainers.
    """

    def __init__(
        self,
        communicator: MPI.Intracomm,
        report: Callable[[float], object],
        hand_over: Callable[[MPI.Intracomm], object] = lambda communicator: None,
    ) -> None:
        self.communicator = communicator
        self._report, self._hand_over = report, hand_over
        self.numbers = list(range(communicator.Get_size()))
        self.generation = 0
        self._first = communicator.Get_group()
        self._own = communicator.Get_rank()
        self._ranks = list(self.numbers)
        self._datasets: list[weakref.ref[Shared]] = []
        self._trained: dict[int, NDArray[np.int64]] = {}
        self.drawn: Drawn | None = None
        self._changes: list[Change] = []
        self._tell: list[Callable[[Change], object]] = []

    @property
    def rank(self) -> int:
        """Number of this trainer."""
        return self.numbers.index(self._own)

    @property
    def count(self) -> int:
        """How many live, as far as is known."""
        return len(self.numbers)

    @property
    def root(self) -> int:
        """Rank in the communicator of the trainer with number 0."""
        return self._ranks.index(self.numbers[0])

    def share(self, dataset: Shared) -> None:
        """Have the rows of a dataset dealt out anew when a trainer has died; in the same order on all trainers."""
        if len(self._datasets) == _MOST_DATASETS:
            raise StreamError(
                f"With 'trainers.elastic' a script may make {_MOST_DATASETS} datasets whose rows the trainers share, "
                "and this is one more. Make each once, before the loop."
            )
        self._datasets.append(weakref.ref(dataset))

    def on_change(self, call: Callable[[Change], object]) -> None:
        """Have something called after each change, by `tell`."""
        self._tell.append(call)

    def tell(self) -> None:
        """Tell of the changes since the last call. To be called between two steps."""
        changes, self._changes = self._changes, []
        for change in changes:
            for call in list(self._tell):
                call(change)

    def attempt(self) -> Attempt:
        """Begin to begin something collective, which `together` brings to its end."""
        return Attempt(self.communicator, self._report)

    def together(self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool = False) -> int:
        """Do something collective, until it has come to its end on all trainers that live.

        Parameters
        ----------
        begin : callable
            Begins it. It is called again where a trainer died before all had the outcome, which then counts nowhere.
        attempt : Attempt, optional
            In which it was begun already.
        step : bool
            This is the reduction of a training step: what was drawn before it counts as trained with it.

        Returns
        -------
        int
            How many trainers have contributed.

        Notes
        -----
        Collective over the living trainers; sleeps.
        """
        for _ in range(_MOST_TRIES + len(self._ranks)):
            if attempt is None:
                attempt = self.attempt()
                begin(attempt)
            ranks, places = list(self._ranks), np.zeros((len(self._ranks), _MOST_DATASETS, 2), np.int64)
            if step and self._datasets:
                attempt.post(attempt.communicator.Iallgather, self._places(), places)
            drawn = self.drawn if step else None
            if drawn is not None:
                drawn.send(attempt, len(ranks))
            done = attempt.wait()
            if drawn is not None and done:
                done = drawn.send_rest(self.attempt())
            reached("reduced")
            everywhere, nobody_died = self._agree(done)
            if everywhere and step:
                self._trained = dict(zip(ranks, places, strict=True))
            if everywhere and drawn is not None:
                drawn.count()
            if not (everywhere and nobody_died):
                self._regroup()
            if everywhere:
                return len(ranks)
            attempt = None
        raise StreamError("The trainers cannot reduce: MPI fails again and again, though nobody has died.")

    def meet(self, done: bool) -> bool:
        """Come together where nothing is reduced; tell whether all are done, and nobody has died: the same on all.

        Notes
        -----
        Collective over the living trainers, also with `together` of others, which they repeat then; sleeps.
        """
        reached("meet")
        everywhere, nobody_died = self._agree(done)
        if not (everywhere and nobody_died):
            self._regroup()
        return everywhere and nobody_died

    def _places(self) -> NDArray[np.int64]:
        own = np.zeros((_MOST_DATASETS, 2), np.int64)
        for row, dataset in zip(own, (ref() for ref in self._datasets), strict=False):
            row[:] = (0, 0) if dataset is None else dataset.place()
        return own

    def _agree(self, done: bool) -> tuple[bool, bool]:
        """Tell whether all are done, and whether nobody has seen a death: the same on all trainers that live."""
        self.communicator.Ack_failed()
        dead = self.communicator.Get_failed()
        flags = np.array([done | (dead.Get_size() == 0) << 1], np.int32)
        request = self.communicator.Iagree(flags)
        reached("agree")
        _wait(request, self._report)  # an error says only that somebody has died since
        _free(dead)
        return bool(flags[0] & 1), bool(flags[0] & 2)

    def _come_together(self) -> None:
        """Make communicators of those that live; again where another one dies meanwhile."""
        from mpi4py import MPI

        made = np.zeros(1, np.int32)
        self.communicator.Revoke()
        while not made[0]:
            living = self.communicator.Shrink()
            assert isinstance(living, MPI.Intracomm)
            self.communicator = living
            # None may revoke it, as another one has died, while others are still making it: Open MPI 5.0 crashes then.
            _wait(living.Iagree(made), self._report)
            made[0] = 1
            try:
                # By this thread: it makes communicators in no two threads at once, either.
                other = living.Dup()
            except MPI.Exception:
                made[0] = 0
                living.Revoke()
            _wait(living.Iagree(made), self._report)
        self._hand_over(other)

    def _regroup(self) -> None:
        """Go on without those that have died."""
        before = list(self.numbers)
        reached("regroup")
        self._come_together()
        reached("regrouped")
        group = self.communicator.Get_group()
        self._ranks = sorted(group.Translate_ranks(None, self._first))
        group.Free()
        lost = [number for number, rank in enumerate(before) if rank not in self._ranks]
        if not lost:  # it is only not known yet, and the next try fails, too
            return
        self.numbers = without(before, lost)
        self.generation += 1
        change = Change(self.rank, self.count, len(before), tuple(lost), self.generation)
        nowhere = np.zeros((_MOST_DATASETS, 2), np.int64)
        for at, dataset in enumerate(ref() for ref in self._datasets):
            if dataset is None:
                continue
            trained = {number: self._trained.get(before[number], nowhere)[at] for number in lost}
            dataset.lose({number: (int(epoch), int(had)) for number, (epoch, had) in trained.items()}, change)
        self._changes.append(change)


def _free(group: MPI.Group) -> None:
    from mpi4py import MPI

    if group != MPI.GROUP_EMPTY:
        group.Free()


def _wait(
    request: MPI.Request,
    report: Callable[[float], object],
    is_broken: Callable[[], bool] = lambda: False,
    when_failed: Callable[[], object] = lambda: None,
) -> bool:
    """Wait for a request asleep, but for the first moments; False where it has failed, as somebody has died.

    Of a death Open MPI's collectives give MPI_ERR_PROC_FAILED, MPI_ERR_REVOKED, now and then another error, and now and
    then nothing: so this looks itself once a second, and leaves a request that does not end though it cannot succeed.
    """
    from mpi4py import MPI

    begun, told_s, failed_s, ended = time.monotonic(), 0.0, math.inf, False
    while not ended:
        failed = False
        try:
            ended = request.Test()
        except MPI.Exception:
            failed, ended = True, request == MPI.REQUEST_NULL
        waited_s = time.monotonic() - begun
        if waited_s - told_s > _TELLS_S:
            told_s = waited_s
            report(waited_s)
            failed = failed or is_broken()
        if failed and failed_s == math.inf:
            failed_s = waited_s
            when_failed()
        if not ended and waited_s - failed_s > _ENDS_S:
            _left.append(request)
            ended = True
        if not ended:
            time.sleep(0.0 if waited_s < _YIELDS_S else _LONGEST_S)
    if told_s:
        report(0.0)
    return failed_s == math.inf
