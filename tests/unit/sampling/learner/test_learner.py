"""A sampler that learns, in its own thread: when it is asked, what it receives, and how it resumes."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from waiting import wait_until

from mpidata.config import load_job
from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.sampling.learner.learner import Learner, make_learner
from mpidata.sampling.learner.published import Newest
from mpidata.sampling.losses.sums import of_samples
from mpidata.sampling.losses.table import LossTable
from mpidata.sampling.parameters_file import read_parameters, write_parameters
from mpidata.sampling.queue import NONE, Queue

JOB = """\
trainers: {program: [python, -c, pass]}
solvers: {program: [python, -c, pass], groups: 2}
parameters: {count: 7, sampler: "told_sampler:Sampler", space: {a: [0, 1]}}
validation: {count: 1}
fields: {u: {shape: [4]}}
"""
SAMPLER = """
import numpy as np
class Sampler:
    made = []
    def __init__(self, space, seed):
        self.number, self.told, self.best = 0, [], 0
        Sampler.made.append(self)
    def sample(self, count):
        FAIL
        rows = 0.01 * (self.number + np.arange(count)).reshape(count, 1)
        self.number += count
        return rows, ["made-up"] * count, [self.best] * count
    def observe(self, simulations, parameters, losses):
        self.told.append((simulations, parameters, losses))
        self.best = int(simulations[np.argmax(losses["max"])])
    def state_dict(self):
        return {"number": self.number, "best": self.best, "seen": np.arange(3)}
    def load_state_dict(self, state):
        self.number, self.best = state["number"], state["best"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "told_sampler.py").write_text(SAMPLER.replace("FAIL", "pass"))
    yield tmp_path
    sys.modules.pop("told_sampler", None)


def begin(folder: Path, kept=None, fresh=True, trainers=None):
    run = RunFolder(folder)
    if fresh:
        write_parameters(run.parameters, ["a"], np.array([[0.5]]), first=7, learned=True)
    table, drawn = read_parameters(run.parameters, ["a"], 7, 1)
    learner = Learner(load_job(folder / "job.yaml"), run, table, drawn, kept, Newest(trainers) if trainers else None)
    waiting = Queue(8, range(7, 8))
    learner.start(waiting)
    return SimpleNamespace(learner=learner, waiting=waiting, table=table, losses=LossTable(), now=0.0)


def take(case) -> int:
    """Return the simulation that a group gets, as soon as one is available."""
    deadline = time.monotonic() + 5
    while (simulation := case.waiting.take(lambda _: True)) == NONE and case.waiting.starved:
        assert time.monotonic() < deadline
        case.learner.turn(case.now, case.waiting, case.losses)
    return simulation


def wait_for(case, condition):
    def holds():
        if not (held := condition()):
            case.learner.turn(case.now, case.waiting, case.losses)
        return held

    wait_until(holds, 5)


def tell(case, simulations, losses):
    case.losses.add(of_samples(np.array(simulations), np.array(losses)))
    case.now += 1.0
    wait_for(case, lambda: sampler().told)


def sampler():
    return sys.modules["told_sampler"].Sampler.made[-1]


def test_generations_are_drawn_as_they_are_dispatched(folder):
    case = begin(folder)
    assert [take(case) for _ in range(3)] == [7, 0, 1]
    assert read_parameters(folder / "parameters.csv", ["a"], 7, 1)[1] == 2
    tell(case, [0, 1, 1, 7], [1.0, 2.0, 4.0, 9.0])
    assert [take(case) for _ in range(6)] == [2, 3, 4, 5, 6, NONE] and not case.waiting.starved
    ((ids, parameters, losses),) = sampler().told
    assert ids.tolist() == [0, 1] and parameters.tolist() == [[0.0], [0.01]]  # without validation
    assert losses["mean"].tolist() == [1.0, 3.0] and losses["max"].tolist() == [1.0, 4.0]
    assert losses.keys() == {"count", "mean", "max", "last", "excess", "difficulty", "not_finite"}
    lines = (folder / "parameters.csv").read_text().splitlines()
    assert lines[:2] == ["simulation,a,rule,parent", "7,0.5,validation,"]
    assert lines[2:5] == ["0,0.0,made-up,0", "1,0.01,made-up,0", "2,0.02,made-up,1"] and len(lines) == 9
    np.testing.assert_array_equal(case.table[:, 0], [*(0.01 * np.arange(7)), 0.5])


def test_sampler_observes_losses_once_a_second(folder):
    case = begin(folder)
    take(case), take(case)
    for later in (0.0, 0.5, 0.9):
        case.losses.add(of_samples(np.array([0]), np.array([1.0])))
        case.learner.turn(1.0 + later, case.waiting, case.losses)
    case.losses.add(of_samples(np.array([1]), np.array([5.0])))
    wait_for(case, lambda: len(sampler().told) == 1)
    assert len(sampler().told) == 1
    case.now = 2.0
    wait_for(case, lambda: len(sampler().told) == 2)
    assert [told[0].tolist() for told in sampler().told] == [[0], [0, 1]]
    assert sampler().told[1][2]["count"].tolist() == [3, 1]


def test_parameters_drawn_after_the_saved_state_are_reused_first(folder):
    case = begin(folder)
    [take(case) for _ in range(4)]
    kept = case.learner.state()["sampler"]
    assert kept["drawn"] == 4
    [take(case) for _ in range(2)]
    before = (folder / "parameters.csv").read_text()
    for state, best in ((kept, 0), ({"drawn": 4, "state": None}, 0), (None, 0)):
        again = begin(folder, state, fresh=False)
        assert [take(again) for _ in range(8)] == [7, 0, 1, 2, 3, 4, 5, 6]
        assert (folder / "parameters.csv").read_text() == before + "6,0.06,made-up,0\n"
        assert sampler().number == 7 and sampler().best == best
        (folder / "parameters.csv").write_text(before)


def test_sampler_with_skip_gets_the_rows_drawn_after_the_saved_state(folder):
    skips = (
        "    def skip(self, parameters):\n        self.skipped = parameters\n        self.number += len(parameters)\n"
    )
    (folder / "told_sampler.py").write_text(SAMPLER.replace("FAIL", "pass") + skips)
    case = begin(folder)
    [take(case) for _ in range(4)]
    kept = case.learner.state()["sampler"]
    [take(case) for _ in range(2)]
    before = (folder / "parameters.csv").read_text()
    for state, skipped in ((kept, [[0.04], [0.05]]), (None, [[0.0], [0.01], [0.02], [0.03], [0.04], [0.05]])):
        again = begin(folder, state, fresh=False)
        assert [take(again) for _ in range(8)] == [7, 0, 1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose(sampler().skipped, skipped)
        assert (folder / "parameters.csv").read_text() == before + "6,0.06,made-up,0\n"
        (folder / "parameters.csv").write_text(before)


def test_error_in_skip_names_the_line(folder):
    skips = "    def skip(self, parameters):\n        parameters[99]\n"
    (folder / "told_sampler.py").write_text(SAMPLER.replace("FAIL", "pass") + skips)
    case = begin(folder)
    [take(case) for _ in range(4)]
    again = begin(folder, None, fresh=False)
    with pytest.raises(MpidataError, match=r"it fails with IndexError: .*, in .*told_sampler.py line 21"):
        [take(again) for _ in range(8)]


def test_failing_sampler_raises_an_error_that_names_it(folder):
    (folder / "told_sampler.py").write_text(SAMPLER.replace("FAIL", "assert self.number < 2, 'full'"))
    case = begin(folder)
    [take(case) for _ in range(3)]
    with pytest.raises(MpidataError, match=r"it fails with AssertionError: full, in .*told_sampler.py line 9"):
        take(case)


def test_sampler_that_exits_raises_an_error(folder):
    (folder / "told_sampler.py").write_text(SAMPLER.replace("FAIL", "if self.number >= 2: raise SystemExit(3)"))
    case = begin(folder)
    [take(case) for _ in range(3)]
    with pytest.raises(MpidataError, match=r"it fails with SystemExit: 3, in .*told_sampler.py line 9"):
        take(case)


def test_slow_sampler_is_reported_once(folder):
    waits = "while self.number >= 2 and not Sampler.goes_on: __import__('time').sleep(0.001)"
    slow = SAMPLER.replace("FAIL", waits).replace("made = []", "made, goes_on = [], False")
    (folder / "told_sampler.py").write_text(slow)
    case = begin(folder)
    [take(case) for _ in range(3)]
    assert case.learner.slow_s(99.0) == 0.0
    case.now = 100.0
    assert case.waiting.take(lambda _: True) == NONE
    case.learner.turn(case.now, case.waiting, case.losses)
    assert [case.learner.slow_s(now) for now in (129.0, 131.0, 140.0)] == [0.0, 31.0, 0.0]
    type(sampler()).goes_on = True
    assert take(case) == 2 and case.learner.slow_s(200.0) == 0.0


def test_built_in_sampler_draws_for_a_job_and_resumes(folder):
    (folder / "job.yaml").write_text(JOB.replace('"told_sampler:Sampler"', "breed, breed: {start: 1, end: 1}"))
    case = begin(folder)
    [take(case) for _ in range(3)]
    case.losses.add(of_samples(np.array([0, 1]), np.array([1.0, 3.0])))
    case.now = 1.0
    [take(case) for _ in range(2)]
    kept = case.learner.state()["sampler"]
    [take(case) for _ in range(2)]
    before = (folder / "parameters.csv").read_text()
    assert [line.split(",", 2)[2] for line in before.splitlines()[4:]] == ["bred,1"] * 4
    again = begin(folder, kept, fresh=False)
    assert [take(again) for _ in range(8)] == [7, 0, 1, 2, 3, 4, 5, 6]
    lines = (folder / "parameters.csv").read_text().splitlines()
    assert len(lines) == 9 and len(set(lines)) == 9 and ",bred,1" in lines[-1]


def test_checkpoint_ahead_of_the_parameters_file_is_refused(folder):
    begin(folder)
    checkpoint = folder / "checkpoints" / "000002"
    checkpoint.mkdir(parents=True)
    for kept in ('{"drawn": 1, "state": null}', '{"drawn": 0, "state": 3}', "[]"):
        (checkpoint / "scheduler.json").write_text(f'{{"sampler": {kept}}}')
        with pytest.raises(MpidataError, match="parameters.csv lacks simulations of checkpoint 2"):
            make_learner(RunFolder(folder), SimpleNamespace(checkpoint=2), np.zeros((8, 1)), 0)


class Trainers:
    """Publish one version for each question, and nothing while `may_answer` is false."""

    def __init__(self):
        self.asked, self.may_answer = [], True

    def ask_published(self, version):
        self.asked.append(version)

    def published(self):
        return (self.asked[-1] + 1, memoryview(b"")) if self.may_answer else False


def test_sampler_without_published_argument_makes_no_requests(folder):
    trainers = Trainers()
    case = begin(folder, trainers=trainers)
    take(case), take(case)
    tell(case, [0], [1.0])
    assert not trainers.asked


def test_published_data_is_fetched_before_losses_are_observed(folder, monkeypatch):
    monkeypatch.setattr("mpidata.sampling.learner.local_sampler.read", lambda contents: contents)
    source = SAMPLER.replace("FAIL", "pass").replace("parameters, losses):", "parameters, losses, published):")
    (folder / "told_sampler.py").write_text(source.replace("parameters, losses))", "published.version, losses))"))
    trainers = Trainers()
    case = begin(folder, trainers=trainers)
    trainers.may_answer = False
    take(case), take(case)
    for _ in range(2):
        case.losses.add(of_samples(np.array([0]), np.array([1.0])))
        case.now += 1.0
        case.learner.turn(case.now, case.waiting, case.losses)
    assert trainers.asked == [0] and not sampler().told
    trainers.may_answer = True
    wait_for(case, lambda: len(sampler().told) == 1)
    case.now += 1.0
    case.losses.add(of_samples(np.array([0]), np.array([1.0])))
    wait_for(case, lambda: len(sampler().told) == 2)
    assert trainers.asked == [0, 1] and [told[1] for told in sampler().told] == [1, 2]
    assert sampler().told[0][2]["count"].tolist() == [2]
