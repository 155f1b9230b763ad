"""Which places trainers have if some are lost in the middle of an epoch: each place comes once, whatever happens."""

import json
import random
from collections import Counter
from typing import Any

import pytest

from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.share_assignment import Dealing
from mpidata.errors import StreamError
from mpidata.trainer.elastic.change import without


class Trainers:
    """The trainers of a job drawn by a seed, in its first epoch."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.drop_last, self.together = seed % 2 == 1, seed % 3 > 0
        trainers = self.dice.randint(2, 6)
        self.n = self.dice.choice([trainers, self.dice.randint(trainers, 30), self.dice.randint(trainers, 200)])
        self.begun = self.at = 0
        self.trained: Counter[int] = Counter()  # how often each place was trained on
        self.start(trainers)
        self.dropped = self.n - len(self.held())
        self.again = 0  # the largest number of places that come once more

    def start(self, trainers: int) -> None:
        self.batch_size = self.dice.randint(1, 6)
        self.all = [Dealing(self.n, self.batch_size, one, trainers, self.drop_last) for one in range(trainers)]

    def places(self, one: Dealing, first: int, end: int | None = None) -> list[int]:
        batches = range(first, one.batches(0) if end is None else end)
        return [place for batch in batches for part in one.places(0, batch) for place in part]

    def held(self) -> list[int]:
        """Return the places that all trainers have and had in this start."""
        return [place for one in self.all for place in self.places(one, self.begun)]

    def lose_some(self) -> None:
        """Lose up to three trainers after any batch: the same for all if trainers step together, else any for each."""
        numbers = self.dice.sample(range(len(self.all)), self.dice.randint(1, min(3, len(self.all) - 1)))
        self.at = self.dice.randint(self.at, self.all[0].batches(0))
        lost = {number: self.at for number in numbers}
        if not self.together:
            lost = {number: self.dice.randint(self.begun, self.all[0].batches(0)) for number in numbers}
        for number, had in lost.items():
            self.trained.update(self.places(self.all[number], self.begun, had))
        self.all = without(self.all, sorted(lost))  # type: ignore[arg-type, assignment]
        kept, of_each = self.held(), [self.places(one, self.begun) for one in self.all]
        left = self.n - self.dropped - len({*kept, *self.trained})
        for number, (one, own) in enumerate(zip(self.all, of_each, strict=True)):
            one.lose(0, lost, number, len(self.all))
            assert self.places(one, self.begun)[: len(own)] == own
        self.check_dealt(left, kept)

    def go_on(self) -> None:
        """Resume with another number of trainers after any batch, with the history as JSON keeps it."""
        self.at = at = self.dice.randint(self.at, self.all[0].batches(0))
        history = json.loads(json.dumps(self.all[0].history(0)))
        assert all(one.history(0) == history for one in self.all)
        for one in self.all:
            self.trained.update(self.places(one, self.begun, at))
        left = self.n - self.dropped - len(self.trained)
        self.begun = at
        self.start(self.dice.randint(1, min(6, self.n)))
        for one in self.all:
            one.go_on(0, at, history)
        self.check_dealt(left, [])

    def check_dealt(self, left: int, kept: list[int]) -> None:
        """Check that the rest is dealt; if too little is left for all, some places come more than once or never."""
        dealt = len(self.held()) - len(kept)
        whole = self.batch_size * len(self.all)
        if self.drop_last:
            assert dealt == left // whole * whole
            self.dropped += left - dealt
        else:
            assert dealt == (len(self.all) if 0 < left < len(self.all) else left) or not self.together
            self.again += dealt - left
        self.check_batches()

    def check_batches(self) -> None:
        """Check that all trainers have equally many batches, none is empty, and the places of each ascend."""
        assert len({one.batches(0) for one in self.all}) == 1
        for one in self.all:
            for batch in range(self.begun, one.batches(0)):
                parts = one.places(0, batch)
                assert parts and all(parts)
                assert all(before.stop < after.start for before, after in zip(parts, parts[1:], strict=False))

    def check_trained(self) -> None:
        """Check that each place was trained on once, except those that were dropped or came again."""
        trained = self.trained + Counter(self.held())
        assert len(trained) == self.n - self.dropped and set(trained) <= set(range(self.n))
        assert sum(trained.values()) - len(trained) <= self.again


@pytest.mark.parametrize("seed", range(300))
def test_each_place_is_trained_once_whichever_trainers_are_lost(seed: int) -> None:
    trainers = Trainers(seed)
    trainers.check_batches()
    for _ in range(trainers.dice.randint(1, 3)):
        if len(trainers.all) > 1:
            trainers.lose_some()
    trainers.check_trained()


@pytest.mark.parametrize("seed", range(300))
def test_another_number_of_trainers_resumes_with_the_remaining_places(seed: int) -> None:
    trainers = Trainers(seed)
    for _ in range(trainers.dice.randint(1, 3)):
        for _ in range(trainers.dice.randint(0, 2)):
            if len(trainers.all) > 1:
                trainers.lose_some()
        trainers.go_on()
        trainers.check_trained()
    if len(trainers.all) > 1:
        trainers.lose_some()
        trainers.check_trained()


@pytest.mark.parametrize("seed", range(100))
def test_batches_exceed_the_batch_size_by_at_most_one(seed: int) -> None:
    trainers = Trainers(seed)
    size = trainers.batch_size
    while len(trainers.all) > 1:
        trainers.lose_some()
        for one in trainers.all:
            sizes = [sum(map(len, one.places(0, batch))) for batch in range(one.batches(0))]
            assert max(sizes, default=0) <= size + 1 and (not trainers.drop_last or set(sizes) <= {size})
            assert one.global_batch == size * len(trainers.all) and one.is_shared == (len(trainers.all) > 1)


@pytest.mark.parametrize("seed", range(20))
def test_epochs_after_a_loss_are_divided_among_the_remaining_trainers(seed: int) -> None:
    trainers = Trainers(seed)
    trainers.lose_some()
    for number, one in enumerate(trainers.all):
        fresh = Dealing(trainers.n, trainers.batch_size, number, len(trainers.all), trainers.drop_last)
        one.begin(1)
        assert one.batches(1) == fresh.batches(1) and one.is_whole(one.history(1))
        assert [one.places(1, at) for at in range(one.batches(1))] == [
            fresh.places(1, at) for at in range(one.batches(1))
        ]


def test_last_remaining_trainer_gets_the_places_of_all_lost_trainers() -> None:
    one = Dealing(20, 2, 3, 5, False)
    one.lose(0, {0: 1, 1: 2, 2: 0, 4: 1}, 0, 1)
    assert [one.places(0, batch) for batch in range(one.batches(0))] == [
        (range(6, 8),),
        (range(16, 18),),
        (range(4, 6),),
        (range(10, 12),),
        (range(14, 16),),
        (range(18, 20),),
    ]


def test_places_that_a_lost_trainer_has_had_are_not_assigned_again() -> None:
    trainers = [Dealing(13, 3, number, 4, False) for number in range(4)]
    for number, one in enumerate(trainers[:3]):  # the lost trainer has had all but the first nine places
        assert one.batches(0) == 1
        one.lose(0, {3: 1}, number, 3)
        assert one.batches(0) == 1


def test_loss_does_not_change_a_history_returned_earlier() -> None:
    one = Dealing(20, 2, 0, 3, False)
    before = one.history(0)
    one.lose(0, {2: 1}, 0, 2)
    assert before == [["begin", 2, 3]] and one.history(0) == [["begin", 2, 3], ["lost", [[2, 1]]]]
    assert not one.is_whole(one.history(0)) and not one.is_whole(before)


def test_resume_after_the_last_batch_adds_no_batches() -> None:
    """The last of 11 rows is in one trainer's second batch, which has one row more than the others."""
    was = Dealing(11, 1, 0, 5, False)
    now = Dealing(11, 2, 0, 2, False)
    assert was.batches(0) == 2
    now.go_on(0, 2, was.history(0))
    assert now.batches(0) == 2


BEGIN = ["begin", 2, 3]


@pytest.mark.parametrize(
    "history",
    [
        [],
        "begin",
        [["begun", 2, 3]],
        [["begin", 2]],
        [["begin", 0, 3]],
        [["begin", 2, 0]],
        [["begin", 2, 99]],
        [["begin", None, 1]],
        [["begin", 2.0, 3]],
        [BEGIN, ["lost"]],
        [BEGIN, ["lost", [[3, 0]]]],
        [BEGIN, ["lost", [[-1, 0]]]],
        [BEGIN, ["lost", [[0, -1]]]],
        [BEGIN, ["lost", [[0, 99]]]],
        [BEGIN, ["lost", [[0, 0], [1, 0], [2, 0]]]],
        [BEGIN, ["lost", []]],
        [BEGIN, ["lost", {"0": 1}]],
        [BEGIN, ["anew", 1, 2]],
        [BEGIN, ["anew", 1, 0, 3]],
        [BEGIN, ["anew", 1, 2, 0]],
        [BEGIN, ["anew", 1, 2, 10**9]],
        [BEGIN, ["anew", 99, 2, 3]],
        [BEGIN, ["anew", 2, 2, 3], ["lost", [[0, 1]]]],
        [BEGIN, ["anew", 2, 2, 3], ["anew", 1, 2, 3]],
        [BEGIN, ["gained", [[0, 1]]]],
        [BEGIN, 7],
    ],
)
def test_impossible_history_is_refused(history: Any) -> None:
    with pytest.raises(StreamError, match="^load_state_dict: the state describes an impossible epoch. Give what"):
        Dealing(20, 2, 0, 3, False).go_on(0, 1, history)


@pytest.mark.parametrize("seed", range(200))
def test_spares_continue_the_epoch_with_the_remaining_trainers(seed: int) -> None:
    trainers = Trainers(seed)
    for _ in range(trainers.dice.randint(0, 2)):
        if len(trainers.all) > 1:
            trainers.together = True
            trainers.lose_some()
    trainers.at = at = trainers.dice.randint(trainers.at, trainers.all[0].batches(0))
    for one in trainers.all:
        trainers.trained.update(trainers.places(one, 0, at))
    left, size = trainers.n - trainers.dropped - len(trainers.trained), trainers.batch_size
    count = trainers.dice.randint(1, min(trainers.n, len(trainers.all) + 2))
    state = json.loads(json.dumps({"epoch": 0, "batches": at, **trainers.all[0].dealt(0, True)}))
    trainers.all = trainers.all[:count]
    for number, one in enumerate(trainers.all):
        one.deal_anew(0, at, number, count)
        one.deal_anew(0, at, number, count)  # as after another death meanwhile
    for number in range(len(trainers.all), count):
        trainers.all.append(Dealing(trainers.n, size, number, count, trainers.drop_last))
        trainers.all[-1].take(state)
    trainers.begun = at
    trainers.check_dealt(left, [])
    trainers.check_trained()
    if count > 1:  # a trainer that has made no step since then had what came before
        lost = trainers.dice.randrange(count)
        trainers.all = without(trainers.all, [lost])  # type: ignore[arg-type, assignment]
        kept = trainers.held()
        left = trainers.n - trainers.dropped - len({*kept, *trainers.trained})
        had = 0 if len(trainers.all[0].history(0)) > 1 else at  # irrelevant in an epoch that was dealt anew
        for number, one in enumerate(trainers.all):
            one.lose(0, {lost: had}, number, count - 1)
        trainers.check_dealt(left, kept)
        trainers.check_trained()


def test_left_counts_the_places_that_this_trainer_has_not_had() -> None:
    dealing, position = Dealing(23, 4, 1, 3, drop_last=False), Position()
    assert dealing.left(position) == 8  # from global batches of 12 and 11 places
    position.batches = 1
    assert dealing.left(position) == 4
    dealing.lose(0, {0: 0}, 1, 2)  # its 7 places go to two trainers
    assert dealing.left(position) == 8
    position.batches = dealing.batches(0)
    assert dealing.left(position) == 0
