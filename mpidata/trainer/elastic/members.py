"""The trainers that live: one agreement a step, and what follows when one has died.

The agreement is MPIX_Comm_agree of ULFM (Bland et al., Post-failure recovery of MPI communication capability, 2013):
all who live learn whether all of them have what was reduced, so either all use it or none, whoever died meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpidata.loading.turns import Turn
from mpidata.trainer.elastic.attempt import Attempt, agree, come_together, split, unlike_calls
from mpidata.trainer.elastic.change import Change, Shared, without
from mpidata.trainer.elastic.giving import Giving
from mpidata.trainer.elastic.meeting import MOST_DATASETS, Decision, Meeting, Row
from mpidata.trainer.elastic.orders import Orders
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.shared_datasets import SharedDatasets, furthest
from mpidata.trainer.elastic.waiting import free
from mpidata.trainer.local_sgd.meeting_points import How, come

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.trainer.elastic.streams.drawn import Drawn
    from mpidata.trainer.local_sgd.meeting_points import Apart

__all__ = ["Members"]

_MOST_TRIES = 10
_SPARE_LOOKS_S = 0.02


class Members:
    """The trainers of a job that goes on when one dies.

    A trainer's number is at first its rank among them; when one has died, the living one with the highest number takes
    its place.

    Parameters
    ----------
    everyone : mpi4py.MPI.Intracomm
        Of all trainers and spares, for this object alone.
    report : callable
        As of `Attempt`.
    hand_over : callable
        Gets another communicator of those that train after each change, to keep.
    spares : int
        How many of them, the last ones, wait for a place at first.

    Attributes
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of those that train and live.
    numbers : list of int
        By number, the rank at the start of the job.
    generation : int
        Counts the changes.
    is_new : bool
        Whether this trainer has just taken a place, and its script has had no batch yet.
    orders : callable
        Gives the newest order of how many are to train, and how many.
    giving : Giving
        What a trainer that takes a place gets of the others.
    retire : callable
        Called where this trainer is to train no more; does not return.
    apart : Apart or None
        Where the trainers make steps of their own; whatever all do together waits until they have come there.
    report : callable
        As given.
    place_of : callable or None
        Tells where a trainer that has died, by its rank at the start, had trained in each dataset, as `places`; None:
        the steps tell, which all make together.
    learn : callable
        Called before others get a place or leave, where the steps do not tell what was trained on.
    drawn : Drawn or None
        What was drawn from a stream, which the trainers tell one another with each step.

    Notes
    -----
    For the thread of the training script. The methods that say so are collective over the living trainers.
    """

    def __init__(
        self,
        everyone: MPI.Intracomm,
        report: Callable[[float], object],
        hand_over: Callable[[MPI.Intracomm], object] = lambda communicator: None,
        spares: int = 0,
    ) -> None:
        self.report, self._hand_over = report, hand_over
        self.numbers = list(range(everyone.Get_size() - spares))
        self.generation = 0
        self._first = everyone.Get_group()
        self._own = everyone.Get_rank()
        self._ranks = list(self.numbers)
        self.communicator = everyone
        self.meeting: Meeting | None = None
        if spares:
            self.communicator = self._meet_first(everyone)
        self.is_new = False
        self.orders: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.giving = Giving()
        self.retire: Callable[[], object] = lambda: None
        self._datasets = SharedDatasets()
        self._trained: dict[int, NDArray[np.int64]] = {}
        self.drawn: Drawn | None = None
        self._changes: list[Change] = []
        self._tell: list[Callable[[Change], object]] = []
        self._holes: list[int] = []
        self.apart: Apart | None = None
        self.place_of: Callable[[int], NDArray[np.int64]] | None = None
        self.learn: Callable[[], object] = lambda: None
        self._orders = Orders()

    def _meet_first(self, everyone: MPI.Intracomm) -> MPI.Intracomm:
        self.meeting = Meeting(everyone, self.report)
        active, other = (split(everyone, not self.waits) for _ in range(2))
        if not self.waits:
            self._hand_over(other)
        return active

    @property
    def waits(self) -> bool:
        """Whether this one is a spare, or trains no more."""
        return self._own not in self.numbers

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
        return self.rank_of(self.numbers[0])

    def is_own(self, one: int) -> bool:
        """Whether this is the trainer that has had this rank at the start."""
        return one == self._own

    @property
    def is_first(self) -> bool:
        """Whether this has number 0; one that does not train has none."""
        return self.is_own(self.numbers[0])

    def rank_of(self, one: int) -> int:
        """Rank in the communicator of the trainer that has had this one at the start."""
        return self._ranks.index(one)

    def share(self, dataset: Shared) -> None:
        """Have the rows of a dataset dealt out anew when a trainer has died; in the same order on all trainers."""
        self._datasets.add(dataset)

    def places(self) -> NDArray[np.int64]:
        """Where this trainer is in each dataset, shape (MOST_DATASETS, 2)."""
        return self._datasets.places()

    def on_change(self, call: Callable[[Change], object]) -> None:
        """Have something called after each change, by `tell`."""
        self._tell.append(call)

    def tell(self) -> None:
        """Tell of the changes since the last call. To be called between two steps."""
        changes, self._changes = self._changes, []
        for change in changes:
            for call in list(self._tell):
                call(change)

    def attempt(self, report: Callable[[float], object] | None = None) -> Attempt:
        """Begin to begin something collective, which `together` brings to its end."""
        return Attempt(self.communicator, report or self.report)

    def together(
        self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool | Shared = False
    ) -> int:
        """Do something collective, until it has come to its end on all trainers that live.

        Parameters
        ----------
        begin : callable
            Begins it. It is called again where a trainer died before all had the outcome, which then counts nowhere.
        attempt : Attempt, optional
            In which it was begun already.
        step : bool or Shared
            This is the reduction of a training step: what was drawn before it counts as trained with it. A dataset:
            it is the end of an epoch of it, with which only what was drawn from that counts.

        Returns
        -------
        int
            How many trainers have contributed.

        Notes
        -----
        Collective over the living trainers; sleeps.
        """
        if attempt is None:
            come(self.apart)
        for _ in range(_MOST_TRIES + len(self._ranks)):
            count = len(self._ranks)
            if self.once(begin, attempt, step):
                return count
            attempt = None
        raise unlike_calls()

    def once(
        self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool | Shared = False
    ) -> bool:
        """Try that once; False where it counts nowhere, as somebody has died. Collective as `together`; sleeps."""
        if attempt is None:
            attempt = self.attempt()
            begin(attempt)
        ranks, places = list(self._ranks), np.zeros((len(self._ranks), MOST_DATASETS + 1, 2), np.int64)
        if step and self._datasets:
            own = self.places() if step is True else self._datasets.at_end(step, self._trained.get(self._own))
            attempt.post(attempt.communicator.Iallgather, np.vstack([own, self.orders()]), places)
        drawn = self.drawn if step is True and self.place_of is None else None
        if drawn is not None:
            drawn.send(attempt, ranks)
        done = attempt.wait()
        if drawn is not None and done:
            done = drawn.send_rest(self.attempt())
        reached("reduced")
        everywhere, nobody_died = agree(self.communicator, done, self.report)
        if everywhere and step:
            if self.place_of is None:
                self._trained = dict(zip(ranks, places, strict=True))
                self._orders.stepped()
            self._orders.hear(int(places[:, -1, 0].max()), places[:, :-1])
        if everywhere and drawn is not None:
            drawn.count()
        if not (everywhere and nobody_died):
            self._regroup()
        return everywhere

    def drawing(self, turn: Turn) -> None:
        """Take in that a batch is about to be drawn. Collective where those that train are to be others from now on."""
        self.is_new = False
        if self._orders.is_of_step(turn):
            if self.apart is not None:
                self.apart.hear()
            while self._orders.is_due and self._all_have_come():
                assert self.meeting is not None
                self.meeting.call(self.numbers)
                self._meet()
        self._orders.drew(turn)

    def stepped(self) -> None:
        """Take in that this trainer makes a step with what it has drawn, where the trainers make steps of their own."""
        self._orders.stepped()

    @property
    def has_news(self) -> bool:
        """Whether there is an order of which the others may not have heard."""
        return self.orders()[0] > self._orders.heard

    def _all_have_come(self) -> bool:
        """Whether all are at the same place, for which those that run apart wait where the furthest one was."""
        if self.apart is None:
            return True
        return self._orders.has_reached(self._datasets.places()) and self.apart.come(How.JOINING)

    def wait_for_place(self) -> bytes | None:
        """As a spare, sleep until there is a place; gives the others' state, None where there will be none."""
        assert self.meeting is not None
        while True:
            if self.meeting.is_called() and (state := self._meet()) is not None:
                return state
            order, count = self.orders()
            if count < 0 or (order and not count):
                return None
            time.sleep(_SPARE_LOOKS_S)

    def meet(self, done: bool) -> bool:
        """Come together where nothing is reduced; tell whether all are done, and nobody has died: the same on all.

        Notes
        -----
        Collective over the living trainers, also with `together` of others, which they repeat then; sleeps.
        """
        reached("meet")
        if self.apart is not None and not done:
            self.apart.average_now()
            return False
        if self.apart is not None and not self.apart.come(How.HERE):
            return False
        everywhere, nobody_died = agree(self.communicator, done, self.report)
        if not (everywhere and nobody_died):
            self._regroup()
        return everywhere and nobody_died

    @property
    def one_has_died(self) -> bool:
        """Whether MPI knows of one that has died, and without which this one is to go on."""
        failed = self.communicator.Get_failed()
        died = failed.Get_size() > 0
        free(failed)
        return died

    def look(self) -> None:
        """Go on without those that have died, where this one waits for the others' word on a checkpoint.

        Collective as `meet` where somebody has died; else returns at once.
        """
        if self.one_has_died:
            if self.apart is not None:
                self.apart.rest()
            self.communicator.Revoke()  # so that nobody waits for this one in it
            agree(self.communicator, False, self.report)
            self._regroup()

    def _regroup(self) -> None:
        """Go on without those that have died."""
        reached("regroup")
        self.communicator, other = come_together(self.communicator, self.report)
        reached("regrouped")
        group = self.communicator.Get_group()
        self._ranks = sorted(group.Translate_ranks(None, self._first))
        group.Free()
        # None: it is only not known yet, and the next try fails, too.
        self._lose([number for number, rank in enumerate(self.numbers) if rank not in self._ranks])
        self._hand_over(other)

    def _lose(self, lost: Sequence[int]) -> None:
        if not lost:
            return
        before = list(self.numbers)
        self.numbers = without(before, lost)
        self._holes += lost
        self.generation += 1
        change = Change(self.rank, self.count, len(before), tuple(lost), self.generation)
        trained = {number: self._trained[before[number]] for number in lost if before[number] in self._trained}
        if self.place_of is not None:
            for number in lost:  # of one that has made no step yet since the last meeting that one knows
                trained[number] = furthest(self.place_of(before[number]), trained.get(number))
        self._datasets.lose(trained, change)
        self._changes.append(change)

    def _meet(self) -> bytes | None:
        """Meet the spares; gives the others' state where this one has taken a place."""
        assert self.meeting is not None
        reached("meet")
        trained = not self.waits
        decision, active, other = self.meeting.meet(self._row())
        self._orders.carried_out(decision.order)
        if decision.order < 0:
            self._orders.put_off(None if decision.alike or self.apart is None else decision.places)
        if self._own not in decision.numbers:
            self.numbers = list(decision.numbers)
            if trained:
                self.retire()
            return None
        self.communicator, self._ranks = active, sorted(decision.numbers)
        if trained:
            self._lose(decision.lost)
        else:
            self.is_new, self.generation = True, decision.generation + bool(decision.lost)
            self.giving.begin()
        self._take(decision)
        if trained and (decision.joined or decision.retired):
            self.learn()
        state = None
        if decision.joined:
            state = self.giving.give(self, decision.joined)
            # Once more, as who has come does: others may have died meanwhile.
            self._datasets.deal_anew(self.rank, self.count)
        if self.communicator is active:
            self._hand_over(other)
        return state

    def _take(self, decision: Decision) -> None:
        """Go on with those that a meeting has decided on."""
        was = len(decision.before) - len(decision.lost)
        self.numbers, self._holes = list(decision.numbers), list(decision.holes)
        if not (decision.joined or decision.retired):
            return
        self.generation += 1
        joined = tuple(sorted(map(self.numbers.index, decision.joined)))
        retired = tuple(range(was - len(decision.retired), was))
        change = Change(self.rank, self.count, was, (), self.generation, joined, retired)
        self._datasets.deal_anew(self.rank, self.count)
        self._trained = dict.fromkeys(self._ranks, decision.places)
        self._changes.append(change)

    def _row(self) -> Row:
        generation, may_join = -1 if self.waits else self.generation, self._datasets.may_be_dealt_anew
        return Row(self._own, generation, self.orders(), may_join, self.numbers, self._holes, self._datasets.places())
