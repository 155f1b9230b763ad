"""A user's samplers, resumed at any place in any epoch, draw the same as with torch's own DataLoader."""

import itertools
import json
import random

import numpy as np
import pytest
import torch
import torch.utils.data
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torchdata.stateful_dataloader.sampler import RandomSampler as StatefulRandomSampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.epochs.random_states import drawn_as_in, of_process, of_sampler, set_of_sampler
from mpidata.errors import StreamError

N, SIZE, EPOCHS = 26, 4, 3


class Drawn(Sampler):
    """Draws from the library that it is given."""

    def __init__(self, permutation):
        self.permutation = permutation

    def __len__(self):
        return N

    def __iter__(self):
        return iter(self.permutation())


class Lazy(Sampler):
    """Draws each index when it is requested."""

    def __len__(self):
        return N

    def __iter__(self):
        for _ in range(N):
            yield int(torch.randint(N, ()))


def seeded():
    generator = torch.Generator()
    generator.manual_seed(11)
    return generator


SAMPLERS = {
    "RandomSampler": lambda: {"sampler": RandomSampler(range(N))},
    "RandomSampler with its generator": lambda: {"sampler": RandomSampler(range(N), generator=seeded())},
    "SubsetRandomSampler": lambda: {"sampler": SubsetRandomSampler(range(0, N))},
    "WeightedRandomSampler": lambda: {"sampler": WeightedRandomSampler(torch.arange(1.0, N + 1), N)},
    "BatchSampler": lambda: {"batch_sampler": BatchSampler(RandomSampler(range(N), generator=seeded()), SIZE, False)},
    "numpy": lambda: {"sampler": Drawn(lambda: np.random.permutation(N).tolist())},
    "random": lambda: {"sampler": Drawn(lambda: random.sample(range(N), N))},
    "lazy": lambda: {"sampler": Lazy()},
}


def seed_all():
    torch.manual_seed(3)
    np.random.seed(4)
    random.seed(5)


def made(loader_class, sampler):
    given = (SAMPLERS | GO_ON)[sampler]()
    return loader_class(range(N), **given, **({} if "batch_sampler" in given else {"batch_size": SIZE}))


def epochs_of(loader, epochs):
    """Return the batches of several epochs, and what a script draws after each."""
    whole = []
    for _ in range(epochs):
        whole.append([batch.tolist() for batch in loader])
        whole.append([torch.rand(()).item(), np.random.rand(), random.random()])
    return whole


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sampler_draws_equal_those_of_torch(job_of, sampler):
    job_of()
    seed_all()
    expected = [b for b in epochs_of(made(DataLoader, sampler), EPOCHS)[::2]]
    assert all(len(sum(epoch, [])) == N for epoch in expected)
    if sampler in ("RandomSampler with its generator", "BatchSampler", "numpy", "random"):
        # torch's own draws a number from its generator for each iteration, which the others do not see
        seed_all()
        assert [[b.tolist() for b in made_once] for made_once in [made(torch.utils.data.DataLoader, sampler)]][
            0
        ] == expected[0]


@pytest.mark.parametrize("batches", range(8))
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_resumed_loader_yields_exactly_the_rest_of_the_epoch(job_of, sampler, batches):
    job_of()
    seed_all()
    loader = made(DataLoader, sampler)
    list(loader)
    iterator = iter(loader)
    for _ in range(batches if batches < 7 else 0):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.tolist() for batch in iterator]
    seed_all()
    torch.rand(17), np.random.rand(3), random.random()  # a script may draw anything before
    again = made(DataLoader, sampler)
    again.load_state_dict(state)
    if batches in (0, 7):
        assert again.resumed == (1, 0)
        return
    assert [batch.tolist() for batch in again] == rest


def test_process_generators_are_restored_after_drawing_from_a_state():
    sampler = RandomSampler(range(N), generator=seeded())
    seed_all()
    states = json.loads(json.dumps([of_process(), of_sampler(sampler)]))
    drawn = list(sampler), random.random(), np.random.rand(), torch.rand(()).item()
    now = of_process()
    set_of_sampler(sampler, states[1])
    with drawn_as_in(states[0]):
        assert (list(sampler), random.random(), np.random.rand(), torch.rand(()).item()) == drawn
    assert of_process() == now != states[0]


class Own(Sampler):
    """Holds the source that it draws from."""

    def __init__(self, kind):
        self.kind = kind
        self.inner = RandomSampler(range(N), generator=seeded())
        self.held = {"numpy": np.random.default_rng, "legacy": np.random.RandomState, "random": random.Random}.get(
            kind, seeded if kind == "torch" else int
        )(*([] if kind in ("torch", "count", "within") else [5]))

    def __len__(self):
        return N

    def __iter__(self):
        if self.kind in ("numpy", "legacy"):
            return iter(self.held.permutation(N).tolist())
        if self.kind == "random":
            return iter(self.held.sample(range(N), N))
        if self.kind == "torch":
            return iter(torch.randperm(N, generator=self.held).tolist())
        if self.kind == "within":
            return iter(list(self.inner)[::-1])
        self.held += 1
        return iter([(i * 7 + self.held) % N for i in range(N)])


@pytest.mark.parametrize("batches", [0, 3, 7])
@pytest.mark.parametrize("kind", ["numpy", "legacy", "random", "torch", "within"])
def test_generators_inside_a_sampler_resume_as_in_an_uninterrupted_run(job_of, kind, batches):
    job_of()
    loader = DataLoader(range(N), SIZE, sampler=Own(kind))
    list(loader)
    iterator = iter(loader)
    for _ in range(batches):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch.tolist() for batch in iterator]
    following = [[batch.tolist() for batch in loader] for _ in range(2)]
    again = DataLoader(range(N), SIZE, sampler=Own(kind))
    again.load_state_dict(state)
    if batches < 7:
        assert [batch.tolist() for batch in again] == rest
    assert [[batch.tolist() for batch in again] for _ in range(2)] == following


def test_sampler_that_draws_other_indices_after_a_resume_is_refused(job_of):
    job_of()
    loader = DataLoader(range(N), SIZE, sampler=Own("count"))
    list(loader)
    next(iter(loader))
    again = DataLoader(range(N), SIZE, sampler=Own("count"))
    again.load_state_dict(loader.state_dict())
    with pytest.raises(StreamError, match=r"the sampler \(BatchSampler of Own\) draws other indices"):
        list(again)


class Endless(Sampler):
    def __iter__(self):
        while True:
            yield from range(N)


class SaysLess(Endless):
    def __len__(self):
        return 8


def test_a_sampler_without_a_length_has_no_state(job_of):
    job_of()
    loader = DataLoader(range(N), SIZE, sampler=Endless())
    iterator = iter(loader)
    assert [next(iterator).tolist() for _ in range(7)][-1] == [24, 25, 0, 1]
    with pytest.raises(StreamError, match=r"the sampler \(BatchSampler of Endless\) has no length and no state_dict"):
        loader.state_dict()
    with pytest.raises(TypeError):
        len(iterator)


def test_sampler_is_drawn_beyond_the_length_that_it_reports(job_of):
    job_of()
    iterator = iter(DataLoader(range(N), SIZE, sampler=SaysLess()))
    assert sum((next(iterator).tolist() for _ in range(7)), [])[:26] == list(range(26))


AS_TORCH = {
    "distributed": lambda rank, ranks: {
        "sampler": DistributedSampler(range(N), ranks, rank, shuffle=True, seed=7),
        "batch_size": SIZE,
    },
    "random": lambda rank, ranks: {"sampler": RandomSampler(range(N), generator=seeded()), "batch_size": SIZE},
    "weighted": lambda rank, ranks: {
        "sampler": WeightedRandomSampler(torch.arange(1.0, N + 1), N, generator=seeded()),
        "batch_size": SIZE,
    },
    "subset": lambda rank, ranks: {"sampler": SubsetRandomSampler(range(rank, N, ranks), seeded()), "batch_size": SIZE},
    "batches": lambda rank, ranks: {"batch_sampler": BatchSampler(Own("numpy"), SIZE, True)},
}


def epochs_with(loader, numbers):
    """Return the batches of these epochs; a DistributedSampler is given each number."""
    whole = []
    for number in numbers:
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(number)
        whole.append([batch.tolist() for batch in loader])
    return whole


@pytest.mark.parametrize("trainers", [1, 2, 3])
@pytest.mark.parametrize("sampler", AS_TORCH)
def test_resume_at_every_batch_matches_torchs_dataloader(job_of, sampler, trainers):
    job = job_of(trainers=trainers)
    for trainer in range(trainers):
        job.be(trainer)
        given = lambda trainer=trainer: AS_TORCH[sampler](trainer, trainers)  # noqa: E731
        expected = epochs_with(torch.utils.data.DataLoader(range(N), **given()), range(3))
        assert epochs_with(DataLoader(range(N), **given()), range(3)) == expected
        for batches in range(1, len(expected[1]) + 1):
            loader = DataLoader(range(N), **given())
            epochs_with(loader, [0])
            if isinstance(loader.sampler, DistributedSampler):
                loader.sampler.set_epoch(1)
            iterator = iter(loader)
            assert [next(iterator).tolist() for _ in range(batches)] == expected[1][:batches]
            again = DataLoader(range(N), **given())
            again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
            rest = [1, 2] if batches < len(expected[1]) else [2]
            got = epochs_with(again, rest)
            assert got == ([expected[1][batches:], expected[2]] if len(rest) > 1 else [expected[2]])


class Stateful(Sampler):
    """Draws an epoch from the process's generator, and has a state with its position."""

    def __init__(self):
        self.order, self.given = [], 0

    def __len__(self):
        return N

    def __iter__(self):
        self.order = self.order or torch.randperm(N).tolist()
        while self.given < N:
            self.given += 1
            yield self.order[self.given - 1]
        self.order, self.given = [], 0

    def state_dict(self):
        return {"order": self.order, "given": self.given}

    def load_state_dict(self, state):
        self.order, self.given = state["order"], state["given"]


GO_ON = SAMPLERS | {
    "WeightedRandomSampler without replacement": lambda: {
        "sampler": WeightedRandomSampler(torch.arange(1.0, N + 1), N, replacement=False)
    },
    "RandomSampler with replacement": lambda: {"sampler": RandomSampler(range(N), replacement=True, num_samples=N)},
    "torchdata": lambda: {"sampler": StatefulRandomSampler(range(N))},
    "stateful": lambda: {"sampler": Stateful()},
}


def trained(batches):
    """Return the batches, each with the script's own draws after it, as by dropout."""
    return [[batch.tolist(), torch.rand(()).item(), np.random.rand(), random.random()] for batch in batches]


@pytest.fixture
def own_generators(monkeypatch):
    """Loaders, which are threads here, leave the trainer's generators alone, as processes do."""
    monkeypatch.setattr("mpidata.loaders.batches._seed_all", lambda seed: None)
    monkeypatch.setattr("mpidata.datasets.epochs.random_states._continued", [])


@pytest.mark.parametrize("batches", [0, 3, 7])
@pytest.mark.parametrize("loaders", [1, 3])
@pytest.mark.parametrize("sampler", GO_ON)
def test_epochs_after_a_resume_match_an_uninterrupted_run(job_of, own_generators, sampler, loaders, batches):
    job_of(loaders=loaders)
    seed_all()
    loader = made(DataLoader, sampler)
    trained(loader)
    iterator = iter(loader)
    trained(itertools.islice(iterator, batches))
    state = loader.state_dict()
    if sampler != "torchdata":  # its state has a tensor
        state = json.loads(json.dumps(state))
    expected = trained(iterator) if batches < 7 else []
    expected += [trained(loader) for _ in range(3)]
    seed_all()
    torch.rand(17), np.random.rand(3), random.random()  # a script may draw anything before
    again = made(DataLoader, sampler)
    again.load_state_dict(state)
    got = trained(again) if batches < 7 else []
    assert got + [trained(again) for _ in range(3)] == expected


def test_second_restored_loader_does_not_reset_the_generators(job_of, own_generators):
    job_of()
    seed_all()
    loaders = [made(DataLoader, "RandomSampler") for _ in range(2)]
    states = [loader.state_dict() for loader in loaders]
    expected = [trained(loader) for loader in loaders]
    torch.rand(5)
    again = [made(DataLoader, "RandomSampler") for _ in range(2)]
    for loader, state in zip(again, states, strict=True):
        loader.load_state_dict(state)
    assert [trained(loader) for loader in again] == expected
