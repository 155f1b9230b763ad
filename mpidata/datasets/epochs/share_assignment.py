"""Which places of each epoch this trainer has, also if trainers are lost within an epoch."""

from __future__ import annotations

import bisect
import copy
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.shares import Shares
from mpidata.errors import StreamError
from mpidata.trainer.elastic.change import Change, Place, without
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.local_sgd.meeting_points import How

__all__ = ["Dealing", "History", "Living", "Places", "share"]

Places = tuple[range, ...]
"""Places of a batch, in ascending order."""

History = list[list[Any]]
"""The changes to an epoch, in order: begin (batch_size, trainers), lost ([number, batches], ...), anew (batches,
batch_size, trainers)."""


class Dealing:
    """Deals the places of epochs to trainers.

    If a trainer is lost, the others keep their places. The rows that it had not trained on follow at the epoch's end,
    by place, in batches of the same size; if there are fewer of them than trainers, some come more than once. Later
    epochs are dealt to the remaining trainers.

    Parameters
    ----------
    n : int
        Number of places of an epoch.
    batch_size : int
        Of one trainer.
    number, trainers : int
        Number of this trainer, and how many there are.
    drop_last : bool
        Drop the places that do not fill a batch on all trainers.

    Raises
    ------
    StreamError
        There are fewer places than trainers.
    """

    def __init__(self, n: int, batch_size: int, number: int, trainers: int, drop_last: bool) -> None:
        self._n, self._batch_size, self._drop_last = n, batch_size, drop_last
        self._number, self._trainers = number, trainers
        self._epochs: dict[int, _Epoch] = {}
        self._of(0)  # raises if the places cannot be dealt

    @property
    def shares(self) -> Shares:
        """How an epoch without lost trainers is dealt."""
        return Shares(self._n, self._batch_size, self._trainers, self._drop_last)

    @property
    def batch_size(self) -> int:
        """Rows of a batch of one trainer."""
        return self._batch_size

    @property
    def number(self) -> int:
        """Number of this trainer."""
        return self._number

    @property
    def global_batch(self) -> int:
        """Rows of a step of all trainers."""
        return self._batch_size * self._trainers

    @property
    def is_shared(self) -> bool:
        """Whether there are several trainers, each with its own batches."""
        return self._trainers > 1

    def begin(self, epoch: int) -> None:
        """Forget the epochs before this one."""
        self._epochs = {at: one for at, one in self._epochs.items() if at >= epoch}

    def batches(self, epoch: int) -> int:
        """Return the number of batches of each trainer in an epoch."""
        return self._of(epoch).batches

    def places(self, epoch: int, batch: int) -> Places:
        """Return the places of a batch of this trainer."""
        return self._of(epoch).places(self._number, batch)

    def left(self, position: Position) -> int:
        """Return how many places of its epoch this trainer has not had yet."""
        batches = range(position.batches, self.batches(position.epoch))
        return sum(len(part) for batch in batches for part in self.places(position.epoch, batch))

    def lose(self, epoch: int, lost: Mapping[int, int], number: int, trainers: int) -> None:
        """Continue an epoch without lost trainers.

        Parameters
        ----------
        epoch : int
            Epoch of this trainer.
        lost : mapping
            Number of batches of this epoch that each lost trainer had trained on, by the trainer's number.
        number, trainers : int
            Number of this trainer from now on, and how many there are.
        """
        now = self._of(epoch)
        now.lose({one: max(had, now.begun) for one, had in lost.items()})
        self._number, self._trainers, self._epochs = number, trainers, {epoch: now}

    def deal_anew(self, epoch: int, batches: int, number: int, trainers: int) -> None:
        """Continue with other trainers, all at the same position, as `take` does for a state at this position.

        Parameters
        ----------
        epoch, batches : int
            Position of all trainers.
        number, trainers : int
            Number of this trainer from now on, and how many there are.
        """
        state = {"epoch": epoch, "batches": batches, "dealt": self.history(epoch)}
        self._number, self._trainers, self._epochs = number, trainers, {}
        self.take(state)

    def history(self, epoch: int) -> History:
        """Return the changes to an epoch, for `go_on`, in types of JSON."""
        return copy.deepcopy(self._of(epoch).history)

    def is_whole(self, history: object) -> bool:
        """Whether an epoch with this history was dealt to the current number of trainers, and none was lost in it."""
        return history == [_begin(self._batch_size, self._trainers)]

    def go_on(self, epoch: int, batches: int, history: History) -> None:
        """Deal the rest of an epoch, of which other trainers have had `batches` batches each.

        Raises StreamError if the history is impossible.
        """
        was = _replay(self._n, self._drop_last, history)
        was.deal_anew(batches, self._batch_size, self._trainers)
        self._epochs = {epoch: was}

    def dealt(self, epoch: int, always: bool) -> dict[str, Any]:
        """Return a state's entry on its epoch, for `take`; without `always` empty if the epoch was not changed."""
        history = self.history(epoch)
        return {"dealt": history} if always or not self.is_whole(history) else {}

    def take(self, state: Mapping[str, Any]) -> None:
        """Deal the rest of a state's epoch anew if it was dealt differently.

        Parameters
        ----------
        state : mapping
            `epoch`, `batches` that each trainer had, `global_batch`, and the result of `dealt`.

        Raises
        ------
        StreamError
            The result of `dealt` is impossible.
        """
        if "dealt" in state:
            history = state["dealt"]
        elif state.get("global_batch") != self.global_batch:
            history = [_begin(state.get("global_batch"), 1)]
        else:
            return
        if not self.is_whole(history):
            self.go_on(state["epoch"], state["batches"], history)

    def _of(self, epoch: int) -> _Epoch:
        if epoch not in self._epochs:
            self._epochs[epoch] = _Epoch(self._n, self._batch_size, self._trainers, self._drop_last)
        return self._epochs[epoch]


class Living:
    """How living trainers continue with a dataset when one of them has died.

    Parameters
    ----------
    members : Members
        The living trainers.
    position : Position
        Of the dataset.
    dealing : Dealing
        Of its epochs.
    when_lost : callable
        Called when the places of lost trainers are dealt to the others.
    when_anew : callable
        Called when the whole rest of an epoch is dealt anew.
    """

    def __init__(
        self,
        members: Members,
        position: Position,
        dealing: Dealing,
        when_lost: Callable[[], object] = lambda: None,
        when_anew: Callable[[], object] = lambda: None,
    ) -> None:
        self._members = members
        self._position, self._dealing = position, dealing
        self._when_lost, self._when_anew = when_lost, when_anew

    def end(self) -> bool:
        """Find out at the end of an epoch whether a trainer has died, which may add batches.

        Collective over the living trainers; sleeps. False: call again if there are no more batches.
        """
        if self._members.apart is not None:
            return self._members.apart.come(How.HERE)
        self._members.together(lambda attempt: attempt.post(attempt.communicator.Ibarrier), step=self)
        return True

    def place(self) -> Place:
        """Position of this trainer."""
        return self._position.epoch, self._position.batches

    def lose(self, lost: Mapping[int, Place], change: Change) -> None:
        """Deal to the others what lost trainers, given by former number and position, had not trained on."""
        epoch, (resumed, before) = self._position.epoch, self._position.resumed
        least = before if resumed == epoch else 0  # each trainer had these batches, even without a step since resuming
        done = {number: max(had, least) if at == epoch else least for number, (at, had) in lost.items()}
        self._dealing.lose(epoch, done, change.rank, change.trainers)
        self._when_lost()

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether `deal_anew` may be called now: not if batches were returned out of order."""
        return not self._position.ahead

    def deal_anew(self, number: int, trainers: int) -> None:
        """Deal the rest of the epoch anew to `trainers` trainers, all at the same position."""
        self._dealing.deal_anew(self._position.epoch, self._position.batches, number, trainers)
        self._when_anew()


def share(
    members: Members | None,
    position: Position,
    dealing: Dealing,
    when_lost: Callable[[], object] = lambda: None,
    when_anew: Callable[[], object] = lambda: None,
) -> Living | None:
    """Have a dataset dealt anew whenever the trainers change, as long as the returned object exists."""
    if members is None:
        return None
    living = Living(members, position, dealing, when_lost, when_anew)
    members.share(living)
    return living


class _Epoch:
    """One epoch: the places dealt at its beginning, then for each trainer those that other trainers left."""

    def __init__(self, n: int, batch_size: int, trainers: int, drop_last: bool) -> None:
        self._shares = Shares(n, batch_size, trainers, drop_last)
        self._batch_size, self._drop_last = batch_size, drop_last
        self._base = self._shares.batches
        self._first = list(range(trainers))  # number of each trainer at the beginning, by its present number
        self._more: list[list[Places]] = [[] for _ in range(trainers)]
        self.begun = 0  # first batch since it was dealt anew
        self._few: list[int] = []  # batches of one place, which several trainers may have
        self.history: History = [_begin(batch_size, trainers)]

    @property
    def trainers(self) -> int:
        return len(self._first)

    @property
    def batches(self) -> int:
        return self._base + len(self._more[self._first[0]])

    def places(self, number: int, batch: int) -> Places:
        first = self._first[number]
        return (self._shares.places(first, batch),) if batch < self._base else self._more[first][batch - self._base]

    def lose(self, lost: Mapping[int, int]) -> None:
        self.history.append(["lost", [[number, lost[number]] for number in sorted(lost)]])
        left = self._left(lost)
        self._first = without(self._first, sorted(lost))
        self._add(left)

    def deal_anew(self, batches: int, batch_size: int, trainers: int) -> None:
        self.history.append(["anew", batches, batch_size, trainers])
        left = self._left(dict.fromkeys(range(len(self._first)), batches))
        self._batch_size, self._base, self._first = batch_size, batches, list(range(trainers))
        self._more, self._few, self.begun = [[] for _ in range(trainers)], [], batches
        self._add(left)

    def _left(self, done: Mapping[int, int]) -> list[range]:
        """Return the places that these trainers have not had after `done` batches, and that no other trainer has."""
        others = [number for number in range(self.trainers) if number not in done]
        held = {self.places(number, batch) for number in others for batch in self._few}
        own = {self.places(number, batch) for number, had in done.items() for batch in range(had, self.batches)}
        return list(_joined(itertools.chain.from_iterable(own - held)))

    def _add(self, left: Sequence[range]) -> None:
        """Append places to those of the trainers, the same number of batches to each."""
        ends = list(itertools.accumulate(map(len, left)))
        n, trainers = sum(map(len, left)), self.trainers
        if n >= trainers:
            shares = Shares(n, self._batch_size, trainers, self._drop_last)
            for number, first in enumerate(self._first):
                parts = (shares.places(number, batch) for batch in range(shares.batches))
                self._more[first] += [_cut(left, ends, part.start, part.stop) for part in parts]
        elif n and not self._drop_last:
            self._few.append(self.batches)
            for number, first in enumerate(self._first):
                self._more[first].append(_cut(left, ends, number % n, number % n + 1))


def _begin(batch_size: Any, trainers: int) -> list[Any]:
    return ["begin", batch_size, trainers]


def _joined(ranges: Iterator[range]) -> Iterator[range]:
    """Sort ranges and join adjacent ones."""
    at: range | None = None
    for one in sorted(ranges, key=lambda one: one.start):
        if at is not None and at.stop == one.start:
            at = range(at.start, one.stop)
            continue
        if at is not None:
            yield at
        at = one
    if at is not None:
        yield at


def _cut(ranges: Sequence[range], ends: Sequence[int], first: int, end: int) -> Places:
    """Cut out the first-th to the end-th place; `ends` counts the places up to each range."""
    cut, at = [], bisect.bisect_right(ends, first)
    while first < end:
        begin = ends[at] - len(ranges[at])
        part = ranges[at][first - begin : end - begin]
        cut.append(part)
        first, at = first + len(part), at + 1
    return tuple(cut)


def _replay(n: int, drop_last: bool, history: History) -> _Epoch:
    """Deal an epoch by its history; raises StreamError if the history is impossible."""
    try:
        (begin, batch_size, trainers), *changes = history
        if begin != "begin":
            raise ValueError(begin)
        epoch = _Epoch(n, _within(batch_size, 1), _within(trainers, 1, n), drop_last)
        for what, *values in changes:
            if what == "lost":
                last, (begun, end) = epoch.trainers - 1, (epoch.begun, epoch.batches)
                lost = {_within(number, 0, last): _within(had, begun, end) for number, had in values[0]}
                _within(len(lost), 1, last)
                epoch.lose(lost)
            elif what == "anew":
                batches, batch_size, trainers = values
                batches = _within(batches, epoch.begun, epoch.batches)
                epoch.deal_anew(batches, _within(batch_size, 1), _within(trainers, 1, n))
            else:
                raise ValueError(what)
    except (ValueError, TypeError, IndexError):
        raise StreamError(
            "load_state_dict: the state describes an impossible epoch. Give what state_dict() returned."
        ) from None
    return epoch


def _within(value: Any, least: int, most: float = math.inf) -> int:
    if not (isinstance(value, int) and least <= value <= most):
        raise ValueError(value)
    return value
