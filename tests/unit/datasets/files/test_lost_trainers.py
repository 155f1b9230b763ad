"""A FileDataset that loses trainers in the middle of an epoch: which rows the others get."""

import dataclasses
import json
from collections import Counter

import pytest
from part_files import ROWS, make_parts

from mpidata.errors import StreamError
from mpidata.trainer.elastic.change import Change


class Members:
    """Keeps the datasets that the trainers share."""

    apart = None

    def __init__(self):
        self.shared = []

    def share(self, dataset):
        self.shared.append(dataset)

    def together(self, begin, step):
        """Nobody has died."""


@pytest.fixture
def elastic(job, tmp_path):
    make_parts(tmp_path)

    def start(trainers, batch_size, **settings):
        each = job(2, trainers)
        each.places[:] = [dataclasses.replace(place, members=Members()) for place in each.places]
        return each, [each.dataset(trainer, tmp_path, batch_size, **settings) for trainer in range(trainers)]

    return start


def lose(job, lost, living, before):
    """Report the lost trainers to the datasets of the living ones, listed by their new numbers."""
    for rank, trainer in enumerate(living):
        (shared,) = job.places[trainer].members.shared
        shared.lose(lost, Change(rank, len(living), before, tuple(lost), 1))


def rows_of(batch):
    return batch["y"].tolist()


def rest(batches):
    """Return the rest of the epoch's rows; all trainers get equally many batches."""
    got = [[rows_of(batch) for batch in of] for of in batches]
    assert len({len(of) for of in got}) == 1
    return [row for of in got for batch in of for row in batch]


@pytest.mark.parametrize("shuffle", ["rows", "parts", None])
def test_rows_of_lost_trainers_come_at_the_end_of_the_epoch(elastic, shuffle):
    job, sets = elastic(4, 3, shuffle=shuffle)
    batches = [iter(data) for data in sets]
    trained = [row for _ in range(3) for of in batches for row in rows_of(next(of))]
    lose(job, {1: (0, 3), 3: (0, 2)}, [0, 2], 4)
    again = rest([batches[0], batches[2]])
    counts = Counter(trained + again)
    assert set(counts) == set(range(ROWS))
    assert {row for row, count in counts.items() if count > 1} == set(trained[-3:])  # from a step that did not count
    assert Counter(rest([iter(sets[0]), iter(sets[2])])) == Counter(range(ROWS))


@pytest.mark.parametrize(("trainers", "batch_size"), [(3, 4), (4, 2)])
def test_loss_before_the_first_step_after_a_resume_repeats_no_earlier_rows(elastic, trainers, batch_size):
    _, sets = elastic(3, 4)
    batches = [iter(data) for data in sets]
    trained = [row for _ in range(4) for of in batches for row in rows_of(next(of))]
    state = json.loads(json.dumps(sets[0].state_dict()))
    job, sets = elastic(trainers, batch_size)
    for data in sets:
        data.load_state_dict(state)
    batches = [iter(data) for data in sets[:-1]]
    trained += [row for of in batches for row in rows_of(next(of))]
    lose(job, {trainers - 1: (0, 0)}, range(trainers - 1), trainers)
    assert Counter(trained + rest(batches)) == Counter(range(ROWS))


def test_state_after_the_last_batch_starts_the_next_epoch_for_any_trainers(elastic):
    """86 rows make global batches of 21; two trainers have the last two rows in larger last batches."""
    _, sets = elastic(3, 7)
    batches = [iter(data) for data in sets]
    trained = [row for _ in range(len(sets[0])) for of in batches for row in rows_of(next(of))]
    assert len(sets[0]) == 4 and Counter(trained) == Counter(range(ROWS))
    state = json.loads(json.dumps(sets[0].state_dict()))
    assert (state["epoch"], state["batches"]) == (0, 4)
    _, sets = elastic(2, 5)
    for data in sets:
        data.load_state_dict(state)
        assert data.resumed == (1, 0)
    assert Counter(rest([iter(data) for data in sets])) == Counter(range(ROWS))


def test_later_losses_do_not_change_a_state(elastic):
    job, sets = elastic(3, 4)
    next(iter(sets[0]))
    before = sets[0].state_dict()
    lose(job, {2: (0, 1)}, [0, 1], 3)
    assert before["dealt"] == [["begin", 4, 3]] and sets[0].state_dict()["dealt"][1:] == [["lost", [[2, 1]]]]


def test_another_global_batch_resumes_only_from_a_state_with_lost_trainers(elastic, job, tmp_path):
    _, sets = elastic(3, 4)
    state = sets[0].state_dict()
    with pytest.raises(StreamError, match="batch_size times trainers of 12, but this FileDataset has 8"):
        job(1, 2).dataset(0, tmp_path, 4).load_state_dict(state)
    job(1, 2).dataset(0, tmp_path, 6).load_state_dict(state)
    lost = {**state, "dealt": [["begin", 4, 3], ["lost", [[2, 0]]]]}
    job(1, 2).dataset(0, tmp_path, 4).load_state_dict(lost)


@pytest.mark.parametrize("dealt", [[["begin", 0, 3]], [["begin"]], [7], [["begin", 4, 3], ["lost", [[9, 9]]]]])
def test_a_state_with_a_wrong_history_is_refused(elastic, dealt):
    _, sets = elastic(3, 4)
    with pytest.raises(StreamError, match="the state describes an impossible epoch"):
        sets[0].load_state_dict({**sets[0].state_dict(), "dealt": dealt})
    with pytest.raises(StreamError, match="this is not a state of a FileDataset"):
        sets[0].load_state_dict({**sets[0].state_dict(), "dealt": 5})
