"""A sampler on its own rank: what the learners are asked when one of them is lost."""

import threading

import numpy as np
import pytest
from waiting import wait_until

from mpidata.errors import MpidataError
from mpidata.sampling.learner.local_sampler import Begun
from mpidata.sampling.learner.published import Contents
from mpidata.sampling.learner.remote_sampler import Answer, RemoteSampling


class Learners:
    def __init__(self):
        self.asked, self.answers = [], []

    def teach(self, number, question):
        self.asked.append((number, question.what, question.arguments, question.contents))

    def learnt(self):
        return self.answers.pop(0) if self.answers else None


@pytest.fixture
def case():
    learners = Learners()
    sampling = RemoteSampling(learners)
    results = []

    def call(method, *arguments):
        def work():
            try:
                results.append(method(*arguments))
            except MpidataError as error:
                results.append(str(error))

        before = len(learners.asked)
        threading.Thread(target=work, daemon=True).start()
        wait_until(lambda: sampling.turn(lambda: True) or sampling._open is not None, 5)
        return learners.asked[before:]

    def answer(learner, number, result=None, state="state", error=""):
        count = len(results)
        learners.answers.append((learner, number, Answer(result, state, False, error)))
        wait_until(lambda: sampling.turn(lambda: False) or len(results) > count, 5)

    sampling.serves(0)
    assert [what for _, what, *_ in call(sampling.begin, Begun(None, np.full((2, 1), 7.0)))] == ["begin"]
    answer(0, 1, state="one")
    return sampling, learners, call, answer, results


def test_next_learner_gets_the_last_state_and_the_unanswered_question(case):
    sampling, learners, call, answer, results = case
    assert call(sampling.draw, 3) == [(2, "draw", (3,), None)]
    answer(0, 2, (np.zeros((3, 1)), []), state="two")
    assert call(sampling.draw, 4) == [(3, "draw", (4,), None)]
    sampling.lost(0)
    sampling.serves(1)
    (number, what, begun, _), again = learners.asked[-2:]
    assert (number, what, begun.state, len(begun.rows)) == (0, "begin", "two", 0)
    assert again == (3, "draw", (4,), None)
    learners.answers.append((0, 3, Answer((np.ones((4, 1)), []), "of the lost one", False)))
    sampling.turn(lambda: False)
    assert sampling.state == "two" and not sampling.forgot
    answer(1, 3, (np.ones((4, 1)), []), state="three")
    assert sampling.state == "three" and results[-1].table.shape == (4, 1)


def test_learner_lost_while_idle_is_replaced_before_the_next_question(case):
    sampling, learners, call, _, _ = case
    sampling.lost(0)
    assert call(sampling.draw, 3) == []
    sampling.serves(1)
    (number, what, begun, _), question = learners.asked[-2:]
    assert (number, what, begun.state, begun.rows.shape) == (0, "begin", "one", (0, 1))
    assert question[:3] == (2, "draw", (3,))


def test_sampler_without_state_starts_over_on_the_next_learner(case):
    sampling, learners, call, answer, _ = case
    call(sampling.begin, Begun(None, np.full((2, 1), 7.0)))
    answer(0, 2, state=None)
    call(sampling.draw, 3)
    answer(0, 3, (np.zeros((3, 1)), []), state=None)
    sampling.lost(0)
    sampling.serves(1)
    assert sampling.forgot
    (number, what, begun, _), question = call(sampling.draw, 4)
    assert (number, what, begun.state, begun.rows.ravel().tolist()) == (0, "begin", None, [7.0, 7.0, 0.0, 0.0, 0.0])
    assert question == (4, "draw", (4,), None)


def test_published_version_is_sent_once_to_each_learner(case):
    sampling, learners, call, answer, _ = case
    contents = Contents(7, memoryview(b""))
    for number in (2, 3):
        ((_, what, _, sent),) = call(sampling.observe, np.arange(1), np.zeros((1, 1)), {}, contents)
        assert what == "observe" and (sent is contents) == (number == 2)
        answer(0, number)
    sampling.serves(1)
    assert call(sampling.observe, np.arange(1), np.zeros((1, 1)), {}, contents)[-1][3] is contents


def test_sampler_error_is_raised_in_the_calling_thread(case):
    sampling, _, call, answer, results = case
    call(sampling.draw, 3)
    answer(0, 2, error="it fails")
    assert results[-1] == "it fails"
