"""The living trainers: one agreement per step, and what follows when one has died.

The agreement is MPIX_Comm_agree of ULFM (Bland et al., Post-failure recovery of MPI communication capability, 2013): it
reports to all living trainers whether all have the reduced values, so either all use them or none, whoever has died.
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
from mpidata.trainer.elastic.meeting import MOST_DATASETS, Decision, Meeting, Row
from mpidata.trainer.elastic.orders import Orders
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.shared_datasets import SharedDatasets, furthest
from mpidata.trainer.elastic.state_transfer import StateTransfer
from mpidata.trainer.elastic.waiting import free
from mpidata.trainer.local_sgd.meeting_points import How, come

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.trainer.elastic.streams.drawn import Drawn
    from mpidata.trainer.local_sgd.meeting_points import IndependentTrainers

__all__ = ["Members"]

_MOST_TRIES = 10
_SPARE_LOOKS_S = 0.02


class Members:
    """The trainers of a job that continues when one dies.

    A trainer's number is initially its rank among them. When one has died, the living trainer with the highest number
    takes its place.

    Parameters
    ----------
    everyone : mpi4py.MPI.Intracomm
        Communicator of all trainers and spares, for this object alone.
    report : callable
        As in `Attempt`.
    hand_over : callable
        After each change called with another communicator of the active trainers, to keep.
    spares : int
        How many of them, the last ones, initially wait for a place.

    Attributes
    ----------
    communicator : mpi4py.MPI.Intracomm
        Communicator of the living active trainers.
    numbers : list of int
        The initial ranks, by number.
    generation : int
        Number of changes so far.
    is_new : bool
        Whether this trainer has just taken a place, and its script has received no batch yet.
    orders : callable
        Returns the number of the newest order to change the number of trainers, and the requested number.
    giving : StateTransfer
        Sends the state of the others to a trainer that takes a place.
    retire : callable
        Called when this trainer must stop training; does not return.
    apart : IndependentTrainers or None
        Set if trainers make their own steps; collective operations wait until all trainers have come there.
    report : callable
        As given.
    place_of : callable or None
        Returns how far a dead trainer, by initial rank, had trained in each dataset, as `places`; None if this is known
        from the steps, which all make together.
    learn : callable
        Called before trainers join or leave, if the steps do not show what was trained on.
    drawn : Drawn or None
        Samples drawn from a stream, which the trainers exchange with each step.

    Notes
    -----
    For the thread of the training script. The methods marked as collective are so over the living trainers.
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
        self.giving = StateTransfer()
        self.retire: Callable[[], object] = lambda: None
        self._datasets = SharedDatasets()
        self._trained: dict[int, NDArray[np.int64]] = {}
        self.drawn: Drawn | None = None
        self._changes: list[Change] = []
        self._tell: list[Callable[[Change], object]] = []
        self._holes: list[int] = []
        self.apart: IndependentTrainers | None = None
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
        """Whether this rank is a spare, or no longer trains."""
        return self._own not in self.numbers

    @property
    def rank(self) -> int:
        """Number of this trainer."""
        return self.numbers.index(self._own)

    @property
    def count(self) -> int:
        """Number of living trainers, as far as known."""
        return len(self.numbers)

    @property
    def root(self) -> int:
        """Rank of the trainer with number 0 in the communicator."""
        return self.rank_of(self.numbers[0])

    def is_own(self, one: int) -> bool:
        """Whether this is the trainer with this initial rank."""
        return one == self._own

    @property
    def is_first(self) -> bool:
        """Whether this trainer has number 0; a rank that does not train has none."""
        return self.is_own(self.numbers[0])

    def rank_of(self, one: int) -> int:
        """Rank of the trainer with this initial rank in the communicator."""
        return self._ranks.index(one)

    def share(self, dataset: Shared) -> None:
        """Divide the rows of a dataset again after each death; call in the same order on all trainers."""
        self._datasets.add(dataset)

    def places(self) -> NDArray[np.int64]:
        """Position of this trainer in each dataset, shape (MOST_DATASETS, 2)."""
        return self._datasets.places()

    def on_change(self, call: Callable[[Change], object]) -> None:
        """Register a callable for `tell` to call after each change."""
        self._tell.append(call)

    def tell(self) -> None:
        """Report the changes since the last call. Call it between two steps."""
        changes, self._changes = self._changes, []
        for change in changes:
            for call in list(self._tell):
                call(change)

    def attempt(self, report: Callable[[float], object] | None = None) -> Attempt:
        """Return an attempt in which to start a collective operation that `together` completes."""
        return Attempt(self.communicator, report or self.report)

    def together(
        self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool | Shared = False
    ) -> int:
        """Repeat a collective operation until it has completed on all living trainers.

        Parameters
        ----------
        begin : callable
            Starts the operation. Called again if a trainer died before all had the result, which then counts nowhere.
        attempt : Attempt, optional
            The attempt in which the operation was already started.
        step : bool or Shared
            True for the reduction of a training step: what was drawn before it then counts as trained. A dataset for
            the end of one of its epochs: then only what was drawn from this dataset counts.

        Returns
        -------
        int
            Number of trainers that contributed.

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
        """Try it once; False if it counts nowhere because a trainer died. Collective like `together`; sleeps."""
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
        """Note that a batch is about to be drawn. Collective if the set of trainers is about to change."""
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
        """Note that this trainer makes a step with what it has drawn, if the trainers make their own steps."""
        self._orders.stepped()

    @property
    def has_news(self) -> bool:
        """Whether there is an order that the others may not know."""
        return self.orders()[0] > self._orders.heard

    def _all_have_come(self) -> bool:
        """Whether all are at the same position; trainers that run apart wait for it where the furthest one was."""
        if self.apart is None:
            return True
        return self._orders.has_reached(self._datasets.places()) and self.apart.come(How.JOINING)

    def wait_for_place(self) -> bytes | None:
        """As a spare, sleep until there is a place; return the others' state, or None if there will be no place."""
        assert self.meeting is not None
        while True:
            if self.meeting.is_called() and (state := self._meet()) is not None:
                return state
            order, count = self.orders()
            if count < 0 or (order and not count):
                return None
            time.sleep(_SPARE_LOOKS_S)

    def meet(self, done: bool) -> bool:
        """Meet without a reduction; return whether all are done and none has died: the same on all.

        Notes
        -----
        Collective over the living trainers, also with `together` on others, which then repeat it; sleeps.
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
        """Whether MPI has detected a death after which this trainer must regroup."""
        failed = self.communicator.Get_failed()
        died = failed.Get_size() > 0
        free(failed)
        return died

    def look(self) -> None:
        """Continue without dead trainers, while this one waits for the others to agree on a checkpoint.

        Collective like `meet` if a trainer has died, else returns at once.
        """
        if self.one_has_died:
            if self.apart is not None:
                self.apart.rest()
            self.communicator.Revoke()  # so that none waits for this trainer in it
            agree(self.communicator, False, self.report)
            self._regroup()

    def _regroup(self) -> None:
        """Continue without the dead trainers."""
        reached("regroup")
        self.communicator, other = come_together(self.communicator, self.report)
        reached("regrouped")
        group = self.communicator.Get_group()
        self._ranks = sorted(group.Translate_ranks(None, self._first))
        group.Free()
        # If none is lost, the death is not known yet, and the next try also fails.
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
            for number in lost:  # if it made no step since the last meeting, the meeting's position is later
                trained[number] = furthest(self.place_of(before[number]), trained.get(number))
        self._datasets.lose(trained, change)
        self._changes.append(change)

    def _meet(self) -> bytes | None:
        """Meet the spares; return the others' state if this one has taken a place."""
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
            # Repeated, as in the trainer that has joined: others may have died meanwhile.
            self._datasets.deal_anew(self.rank, self.count)
        if self.communicator is active:
            self._hand_over(other)
        return state

    def _take(self, decision: Decision) -> None:
        """Continue with the trainers that a meeting has decided on."""
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
