"""A sampler on learners that die at any moment draws the same as in the scheduler's thread."""

import pickle
import random
import sys
import time

import numpy as np
import pytest

from mpidata.config import load_job
from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.sampling.learner.learner import Learner
from mpidata.sampling.learner.local_sampler import LocalSampling
from mpidata.sampling.learner.program import Worker
from mpidata.sampling.learner.remote_sampler import RemoteSampling
from mpidata.sampling.losses.sums import of_samples
from mpidata.sampling.losses.table import LossTable
from mpidata.sampling.parameters_file import read_parameters, write_parameters
from mpidata.sampling.queue import NONE, Queue

COUNT = 24
JOB = f"""\
trainers: {{program: [python, -c, pass]}}
solvers: {{program: [python, -c, pass], groups: 2}}
parameters: {{count: {COUNT}, sampler: "far_sampler:Sampler", learner_rank: true, space: {{a: [0, 1]}}}}
validation: {{count: 1}}
fields: {{u: {{shape: [4]}}}}
"""
SAMPLER = """
import numpy as np
class Sampler:
    def __init__(self, space, seed):
        self.random, self.told, self.calls = np.random.default_rng(seed), 0.0, 0
    def sample(self, count):
        self.calls += 1
        assert self.calls < 10_000, "full"
        return self.random.random((count, 1)) + self.told
    def observe(self, simulations, parameters, losses):
        self.told += losses["mean"].sum()
    def state_dict(self):
        return vars(self)
    def load_state_dict(self, state):
        vars(self).update(state)
"""


class Ranks:
    """Learners, each a `Worker` in this process; `kill` removes the one that serves, and its missing answers."""

    def __init__(self, job):
        self.job, self.number, self.asked, self.serving = job, -1, [], None

    def begin(self, sampling):
        self.number += 1
        self.serving = Worker(LocalSampling(self.job))
        sampling.serves(self.number)

    def kill(self, sampling):
        sampling.lost(self.number)
        self.serving = None

    def teach(self, number, question):
        self.asked.append((self.number, number, question.what))
        if self.serving is not None:
            self.serving.ask(number, pickle.loads(pickle.dumps(question)))

    def learnt(self):
        if self.serving is None or self.serving.answers.empty():
            return None
        return self.number, *self.serving.answers.get()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "far_sampler.py").write_text(SAMPLER)
    yield tmp_path
    sys.modules.pop("far_sampler", None)


def run(folder, ranks=None, dies=lambda: False):
    """Draw all, and report losses after every second draw; `dies` is called at each turn. Return the parameters."""
    run = RunFolder(folder)
    write_parameters(run.parameters, ["a"], np.array([[0.5]]), first=COUNT, learned=True)
    table, drawn = read_parameters(run.parameters, ["a"], COUNT, 1)
    sampling = RemoteSampling(ranks) if ranks else None
    learner = Learner(load_job(folder / "job.yaml"), run, table, drawn, None, None, sampling)
    waiting, losses, now = Queue(COUNT + 1, range(COUNT, COUNT + 1)), LossTable(), 0.0
    learner.start(waiting)
    if ranks:
        ranks.begin(sampling)
    deadline, taken = time.monotonic() + 20, 0
    while taken <= COUNT:
        assert time.monotonic() < deadline
        if (simulation := waiting.take(lambda _: True)) != NONE:
            taken += 1
            if simulation < COUNT and simulation % 4 == 3:  # all that was drawn has been taken: the next draw is due
                while learner._observing or losses.has_news:
                    learner.turn(now, waiting, losses)
                losses.add(of_samples(np.array([simulation]), np.array([0.25])))
                now += 1.0
                while losses.has_news or learner._observing:
                    turn(learner, ranks, sampling, dies, now, waiting, losses)
            continue
        turn(learner, ranks, sampling, dies, now, waiting, losses)
    assert (sampling is None) or not sampling.needed or not waiting.starved
    return table[:COUNT, 0].tolist()


def turn(learner, ranks, sampling, dies, now, waiting, losses):
    assert time.monotonic() < turn.deadline
    learner.turn(now, waiting, losses)
    if ranks and dies():
        ranks.kill(sampling)
        learner.turn(now, waiting, losses)
        ranks.begin(sampling)


@pytest.fixture(autouse=True)
def _in_time():
    turn.deadline = time.monotonic() + 30


def test_learner_draws_the_same_as_the_thread_one_question_at_a_time(folder):
    here = run(folder)
    ranks = Ranks(load_job(folder / "job.yaml"))
    assert run(folder, ranks) == here
    assert [number for _, number, _ in ranks.asked] == list(range(1, len(ranks.asked) + 1))
    assert ranks.asked[0][2] == "begin" and {what for *_, what in ranks.asked[1:]} == {"draw", "observe"}


@pytest.mark.parametrize("seed", range(6))
def test_sampler_resumes_after_learner_deaths_and_draws_the_same(folder, seed):
    here, chosen = run(folder), random.Random(seed)
    ranks = Ranks(load_job(folder / "job.yaml"))
    assert run(folder, ranks, lambda: ranks.number < 8 and chosen.random() < 0.1) == here
    assert ranks.number > 0
    of_each = [[what for rank, _, what in ranks.asked if rank == n] for n in range(ranks.number + 1)]
    assert all(asked[0] == "begin" and "begin" not in asked[1:] for asked in of_each if asked), of_each
    lines = (folder / "parameters.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[2:]] == [str(n) for n in range(COUNT)]


def test_sampler_exception_is_raised_by_turn(folder):
    (folder / "far_sampler.py").write_text(SAMPLER.replace("10_000", "3"))
    with pytest.raises(MpidataError, match=r"it fails with AssertionError: full, in .*far_sampler.py line 8"):
        run(folder, Ranks(load_job(folder / "job.yaml")))
