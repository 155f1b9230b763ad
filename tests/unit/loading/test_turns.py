"""Which of several iterations counts its batches."""

import gc

from mpidata.loading.turns import Turn, Turns


class Counted(Turns):
    """Counts the batches that the counting iteration reports."""

    def __init__(self) -> None:
        super().__init__(self._one_more)
        self.batches = 0

    def _one_more(self) -> None:
        self.batches += 1

    def by(self, turn: Turn) -> int:
        """Take a batch; return how many batches it counts for."""
        before = self.batches
        turn.next()
        return self.batches - before


def test_first_of_several_open_iterations_counts_its_batches() -> None:
    turns = Counted()
    training, beside = turns.begin(), turns.begin()
    assert [turns.by(turn) for turn in (training, beside, training)] == [1, 0, 1]
    validation = turns.begin()
    assert turns.by(validation) == 0
    del training
    gc.collect()
    assert [turns.by(turn) for turn in (beside, validation)] == [1, 0]  # replaces the turn that has ended


def test_open_validation_counts_its_batches_only_if_no_training_runs() -> None:
    turns = Counted()
    check = turns.begin(validates=True)
    assert turns.by(check) == 1
    training = turns.begin()
    assert [turns.by(turn) for turn in (training, check, training)] == [1, 0, 1]
    validation = turns.begin(validates=True)
    assert [turns.by(turn) for turn in (validation, training)] == [0, 1]
    training.end()
    assert turns.by(validation) == 1


def test_iteration_that_starts_alone_counts_its_batches() -> None:
    turns = Counted()
    for _ in range(2):
        turn = turns.begin()
        assert [turns.by(turn), turns.by(turn)] == [1, 1]
        del turn


def test_is_computing_and_in_epoch_follow_the_open_and_left_loops() -> None:
    turns = Turns(lambda: None)
    assert not turns.in_epoch and not turns.is_computing()
    alone = turns.begin()
    alone.next()
    assert not turns.is_computing()
    alone.given()
    assert turns.is_computing() and turns.given == 1 and not turns.in_epoch
    del alone  # as by `break`
    gc.collect()
    assert not turns.is_computing()
    together = turns.begin(together=True)
    together.next()
    together.given()
    assert turns.is_computing() and turns.in_epoch
    together.end()
    assert not turns.is_computing() and not turns.in_epoch
    turns.begin(together=True)  # and left at once
    assert turns.in_epoch
