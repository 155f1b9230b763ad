"""Which places of each epoch this trainer has, also where trainers are lost in the middle of one."""

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
"""Of a batch, in ascending order."""

History = list[list[Any]]
"""What was done with an epoch, in turn: begin (batch_size, trainers), lost ([number, batches], ...), anew (batches,
batch_size, trainers)."""


class Dealing:
    """Deals the places of epochs to trainers.

    Where a trainer is lost, the others keep what they have, and what it had not trained on comes at the epoch's end, by
    place, in batches of the same size; of fewer such rows than trainers some come more than once. The epochs that
    follow are dealt to those that are left.

    Parameters
    ----------
    n : int
        Number of places of an epoch.
    batch_size : int
        Of one trainer.
    number, trainers : int
        Number of this trainer, and how many there are.
    drop_last : bool
        Leave out what does not fill a batch on all trainers.

    Raises
    ------
    StreamError
        There are fewer places than trainers.
    """

    def __init__(self, n: int, batch_size: int, number: int, trainers: int, drop_last: bool) -> None:
        self._n, self._batch_size, self._drop_last = n, batch_size, drop_last
        self._number, self._trainers = number, trainers
        self._epochs: dict[int, _Epoch] = {}
        self._of(0)  # refuses what cannot be dealt

    @property
    def shares(self) -> Shares:
        """How an epoch is dealt in which nobody is lost."""
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
        """Whether each of several trainers has batches of its own."""
        return self._trainers > 1

    def begin(self, epoch: int) -> None:
        """Forget the epochs before this one."""
        self._epochs = {at: one for at, one in self._epochs.items() if at >= epoch}

    def batches(self, epoch: int) -> int:
        """Count the batches of each trainer in an epoch."""
        return self._of(epoch).batches

    def places(self, epoch: int, batch: int) -> Places:
        """Get the places of a batch of this trainer."""
        return self._of(epoch).places(self._number, batch)

    def left(self, position: Position) -> int:
        """Count the places of its epoch that this trainer has not had."""
        batches = range(position.batches, self.batches(position.epoch))
        return sum(len(part) for batch in batches for part in self.places(position.epoch, batch))

    def lose(self, epoch: int, lost: Mapping[int, int], number: int, trainers: int) -> None:
        """Go on without trainers in the middle of an epoch.

        Parameters
        ----------
        epoch : int
            In which this trainer is.
        lost : mapping
            By number, how many batches of this epoch each of them had trained on.
        number, trainers : int
            Number of this trainer from now on, and how many there are.
        """
        now = self._of(epoch)
        now.lose({one: max(had, now.begun) for one, had in lost.items()})
        self._number, self._trainers, self._epochs = number, trainers, {epoch: now}

    def deal_anew(self, epoch: int, batches: int, number: int, trainers: int) -> None:
        """Go on with others, all at the same place: just as `take` does where a state is of so many batches.

        Parameters
        ----------
        epoch, batches : int
            Where all trainers are.
        number, trainers : int
            Number of this trainer from now on, and how many there are.
        """
        state = {"epoch": epoch, "batches": batches, "dealt": self.history(epoch)}
        self._number, self._trainers, self._epochs = number, trainers, {}
        self.take(state)

    def history(self, epoch: int) -> History:
        """Tell how an epoch came to be dealt as it is, for `go_on`; as JSON has it."""
        return copy.deepcopy(self._of(epoch).history)

    def is_whole(self, history: object) -> bool:
        """Whether an epoch of this history was dealt to as many trainers as there are, and none was lost in it."""
        return history == [_begin(self._batch_size, self._trainers)]

    def go_on(self, epoch: int, batches: int, history: History) -> None:
        """Deal what is left of an epoch behind so many batches, which other trainers have had.

        Raises StreamError where the history makes no sense.
        """
        was = _replay(self._n, self._drop_last, history)
        was.deal_anew(batches, self._batch_size, self._trainers)
        self._epochs = {epoch: was}

    def dealt(self, epoch: int, always: bool) -> dict[str, Any]:
        """Give what a state has of its epoch, for `take`; without `always` nothing where it was dealt as any is."""
        history = self.history(epoch)
        return {"dealt": history} if always or not self.is_whole(history) else {}

    def take(self, state: Mapping[str, Any]) -> None:
        """Deal what is left of the epoch of a state anew, where it was dealt in another way.

        Parameters
        ----------
        state : mapping
            `epoch`, `batches` that each trainer had, `global_batch`, and what `dealt` gave.

        Raises
        ------
        StreamError
            What `dealt` gave makes no sense.
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
    """What the trainers that live are to do with a dataset when one has died.

    Parameters
    ----------
    members : Members
        Those that live.
    position : Position
        Of the dataset.
    dealing : Dealing
        Its epochs.
    when_lost : callable
        Called when what is left of an epoch is dealt to fewer.
    when_anew : callable
        Called when all that is left of it is dealt anew.
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
        """At the end of an epoch, find out whether somebody has died before: then there may be more batches.

        Collective over the trainers that live; sleeps. False where it is to be called again, if there are none.
        """
        if self._members.apart is not None:
            return self._members.apart.come(How.HERE)
        self._members.together(lambda attempt: attempt.post(attempt.communicator.Ibarrier), step=self)
        return True

    def place(self) -> Place:
        """Where this trainer is."""
        return self._position.epoch, self._position.batches

    def lose(self, lost: Mapping[int, Place], change: Change) -> None:
        """Deal out anew what these trainers, by their numbers before, had not trained on at their places."""
        epoch, (resumed, before) = self._position.epoch, self._position.resumed
        least = before if resumed == epoch else 0  # no trainer had less, though it has made no step since
        done = {number: max(had, least) if at == epoch else least for number, (at, had) in lost.items()}
        self._dealing.lose(epoch, done, change.rank, change.trainers)
        self._when_lost()

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether `deal_anew` may be called now: not where batches were given out before their turn."""
        return not self._position.ahead

    def deal_anew(self, number: int, trainers: int) -> None:
        """Deal out anew what nobody has had yet, to so many; all are at the same place."""
        self._dealing.deal_anew(self._position.epoch, self._position.batches, number, trainers)
        self._when_anew()


def share(
    members: Members | None,
    position: Position,
    dealing: Dealing,
    when_lost: Callable[[], object] = lambda: None,
    when_anew: Callable[[], object] = lambda: None,
) -> Living | None:
    """Have a dataset dealt out anew when the trainers are others, as long as somebody has what is returned."""
    if members is None:
        return None
    living = Living(members, position, dealing, when_lost, when_anew)
    members.share(living)
    return living


class _Epoch:
    """One epoch: what was dealt at its beginning, and behind it for each trainer what others have left."""

    def __init__(self, n: int, batch_size: int, trainers: int, drop_last: bool) -> None:
        self._shares = Shares(n, batch_size, trainers, drop_last)
        self._batch_size, self._drop_last = batch_size, drop_last
        self._base = self._shares.batches
        self._first = list(range(trainers))  # by number, which one it was at the beginning
        self._more: list[list[Places]] = [[] for _ in range(trainers)]
        self.begun = 0  # which batch is the first one since it was dealt anew
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
        """Places that trainers have not had yet, each behind so many batches, but those that others have, too."""
        others = [number for number in range(self.trainers) if number not in done]
        held = {self.places(number, batch) for number in others for batch in self._few}
        own = {self.places(number, batch) for number, had in done.items() for batch in range(had, self.batches)}
        return list(_joined(itertools.chain.from_iterable(own - held)))

    def _add(self, left: Sequence[range]) -> None:
        """Deal places to the trainers behind what they have, as many batches to all."""
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
    """Sort ranges, and join those that touch."""
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
    """Deal an epoch as it was dealt before; raises StreamError where that makes no sense."""
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
            "load_state_dict: the state says of an epoch what cannot be. Give what state_dict() returned."
        ) from None
    return epoch


def _within(value: Any, least: int, most: float = math.inf) -> int:
    if not (isinstance(value, int) and least <= value <= most):
        raise ValueError(value)
    return value
