"""A DataLoader resumes where its state was taken."""

import json

import pytest
import torch
from torch.utils.data import Sampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.errors import StreamError


class Stateful(Sampler):
    """Resumes at the position of its state; a second draw from it would be noticed."""

    def __init__(self, n):
        self.n, self.place = n, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        while self.place < self.n:
            self.place += 1
            yield self.n - self.place
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


MAKERS = {
    "in turn": lambda: DataLoader(range(30), batch_size=4),
    "shuffled": lambda: DataLoader(range(30), batch_size=4, shuffle=True),
    "shared": lambda: DataLoader(range(30), batch_size=4, shuffle=True, share=True),
    "sampler": lambda: DataLoader(range(30), batch_size=4, sampler=list(range(29, -1, -1))),
    "stateful sampler": lambda: DataLoader(range(30), batch_size=4, sampler=Stateful(30)),
}


@pytest.mark.parametrize("batches", [0, 3, 8])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_batches_after_a_resume_match_an_uninterrupted_run(job_of, make, batches):
    job_of()
    loader = make()
    list(loader)
    running = iter(loader)
    for _ in range(batches):
        next(running)
    if batches == 8:
        assert next(running, None) is None
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.tolist() for batch in running] if batches < 8 else []
    following = [batch.tolist() for batch in loader]
    again = make()
    again.load_state_dict(state)
    assert again.resumed == ((2, 0) if batches == 8 else (1, batches))
    assert [batch.tolist() for batch in again] == (following if batches == 8 else rest)
    if batches < 8:
        assert [batch.tolist() for batch in again] == following


def test_resume_with_in_order_false_skips_batches_yielded_early(job_of, threads):
    job_of(program=threads)
    dataset = [torch.tensor(i) for i in range(12)]
    loader = DataLoader(dataset, in_order=False)
    running = iter(loader)
    given = [int(next(running)) for _ in range(5)]
    again = DataLoader(dataset, in_order=False)
    again.load_state_dict(loader.state_dict())
    assert sorted(given + [int(batch) for batch in again]) == list(range(12))


def test_set_epoch_keeps_the_restored_position_only_for_the_restored_epoch(job_of):
    job_of()
    loader = MAKERS["shared"]()
    for epoch in range(2):
        loader.set_epoch(epoch)
        running = iter(loader)
        next(running)
    state = loader.state_dict()
    expected = [batch.tolist() for batch in running]
    for epoch, batches in ((1, 7), (5, 8)):
        again = MAKERS["shared"]()
        again.load_state_dict(state)
        assert again.resumed == (1, 1)
        again.set_epoch(epoch)
        given = [batch.tolist() for batch in again]
        assert len(given) == batches and (given == expected) == (epoch == 1)


def test_other_number_of_trainers_resumes_only_with_the_same_global_batch(job_of):
    job_of(trainers=1)
    loader = DataLoader(range(64), batch_size=8, shuffle=True, share=True)
    running = iter(loader)
    next(running)
    state = loader.state_dict()
    expected = next(running).tolist()
    job = job_of(trainers=2)
    halves = []
    for trainer in range(2):
        job.be(trainer)
        again = DataLoader(range(64), batch_size=4, shuffle=True, share=True)
        again.load_state_dict(state)
        halves += next(iter(again)).tolist()
    assert halves == expected
    with pytest.raises(StreamError, match="batch size times trainers of 8, but this DataLoader has 16"):
        DataLoader(range(64), batch_size=8, shuffle=True, share=True).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"samples": 5}, "a dataset of length 5"), ({"trainers": 3}, "trainers: 3"), ({"epoch": -1}, "not a state")]
    + [({"seed": None}, "not a state"), ({"ahead": None}, "not a state")],
)
def test_mismatched_states_are_refused(job_of, change, sentence):
    job_of()
    loader = DataLoader(range(30))
    next(iter(loader))
    with pytest.raises(StreamError, match=sentence):
        DataLoader(range(30)).load_state_dict({**loader.state_dict(), **change})
