"""How an inference rank joins questions, calls the function and splits what it returns."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from mpidata.errors import MpidataError
from mpidata.inference import serving
from mpidata.inference.function import Function, FunctionError, read_weights
from mpidata.inference.over_mpi import LEAVE
from mpidata.inference.questions import Array, Question, Shape
from mpidata.inference.serving import Serving
from mpidata.inference.weights import Weights

F4 = np.dtype(np.float32)
X = Array("x", torch.float32, F4, ())
Y = Array("y", torch.float32, F4, ())
WIDE = Array("x", torch.float32, F4, (2,))


class Asked:
    """Questions that have come, and the answers to them."""

    def __init__(self, *questions: Question) -> None:
        self.questions = list(questions)
        self.answers: dict[int, list[float]] = {}
        self.waits: list[float] = []
        self.more = False
        self.versions: list[int] = []
        self.said: list[str] = []

    def next(self, timeout_s: float) -> object:
        self.waits.append(timeout_s)
        if self.questions:
            found = self.questions.pop(0)
            self.more = bool(self.questions)
            return found
        return None if timeout_s <= 0 else LEAVE

    def answer(self, question: Question, version: int, outputs: list[torch.Tensor]) -> None:
        self.versions.append(version)
        assert not any(tensor.is_conj() or tensor.is_neg() for tensor in outputs)  # their memory is sent
        self.answers[question.number] = [tensor.tolist() for tensor in outputs][0]


def question(number: int, *values: float) -> Question:
    """Return a question with these rows."""
    sizes = (4 * len(values),)
    return Question(1, number, Shape(len(values), (X,), (Y,), sizes, sizes, ("x",)), [np.array(values, F4)])


def serve(asked: Asked, call: Callable[..., Any], batch: int = 100, weights: Any = None, wait_s: float = 0.0) -> None:
    function = Function.__new__(Function)
    function.name, function._call, function.takes_weights = "net:answer", call, weights is not None
    function._process = os.getpid()
    Serving(asked, function, Weights(weights or None), batch, wait_s, asked.said.append).serve()


def test_rows_of_several_questions_go_into_one_call() -> None:
    calls = []

    def double(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        assert not torch.is_grad_enabled()
        calls.append(len(inputs["x"]))
        return {"y": 2 * inputs["x"], "more": torch.zeros(())}

    asked = Asked(question(1, 1, 2), question(2), question(3, 3), question(4, 4, 5))
    serve(asked, double, batch=4)
    assert asked.answers == {1: [2, 4], 2: [], 3: [6], 4: [8, 10]} and calls == [3, 2]


def test_a_question_without_rows_needs_no_call() -> None:
    asked = Asked(question(1))
    serve(asked, lambda inputs: pytest.fail("it was called"))
    assert asked.answers == {1: []}


def test_question_with_more_rows_than_a_batch_gets_its_own_call() -> None:
    calls = []
    asked = Asked(question(1, 1, 2, 3), question(2, 4))
    serve(asked, lambda inputs: calls.append(len(inputs["x"])) or {"y": inputs["x"]}, batch=2)
    assert calls == [3, 1]


def test_questions_of_another_shape_are_not_joined() -> None:
    calls = []
    wide = Question(1, 2, Shape(1, (WIDE,), (Y,), (8,), (4,), ("x",)), [np.zeros((1, 2), F4)])
    asked = Asked(question(1, 1), wide, question(3, 2))
    serve(
        asked,
        lambda inputs: calls.append(tuple(inputs["x"].shape)) or {"y": inputs["x"].reshape(len(inputs["x"]), -1)[:, 0]},
    )
    assert calls == [(2,), (1, 2)] and asked.answers[3] == [2]


def test_serving_waits_up_to_wait_s_for_more_rows() -> None:
    asked = Asked(question(1, 1))
    serve(asked, lambda inputs: {"y": inputs["x"]}, wait_s=5.0)
    assert any(4 < wait <= 5 for wait in asked.waits) and asked.answers == {1: [1]}
    full = Asked(question(1, 1), question(2, 2))
    serve(full, lambda inputs: {"y": inputs["x"]}, batch=2, wait_s=5.0)
    assert not any(4 < wait <= 5 for wait in full.waits)


def test_a_function_that_takes_weights_gets_them_and_is_not_called_without() -> None:
    asked = Asked(question(1, 1))
    serve(asked, lambda inputs, weights: {"y": inputs["x"] * weights["w"]}, weights={"w": torch.tensor(3.0)})
    assert asked.answers == {1: [3]}
    unanswered = Asked(question(1, 1))
    serve(unanswered, lambda inputs, weights: pytest.fail("it was called"), weights={})
    assert unanswered.answers == {}


def test_wait_for_weights_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(inputs: Any, weights: Any) -> None:
        pytest.fail("it was called")

    patient, asked = Asked(question(1, 1)), Asked(*(question(number, 1) for number in range(4)))
    serve(patient, call, weights={})
    assert not patient.said
    monkeypatch.setattr(serving, "PATIENCE_S", 0.0)
    serve(asked, call, weights={})
    (said,) = asked.said
    assert "net:answer, which takes weights" in said and "inference.weights" in said and "mpidata.publish" in said


class Newer:
    """A trainer's answers, in order."""

    def __init__(self, *said: tuple[int, dict[str, torch.Tensor]] | None) -> None:
        self.said = list(said)

    def newer_than(self, version: int) -> tuple[int, dict[str, torch.Tensor]] | None:
        return self.said.pop(0) if self.said else None


def test_resumed_run_uses_weights_of_a_file_only_if_none_are_published() -> None:
    of_file, of_checkpoint = {"w": torch.tensor(1.0)}, {"w": torch.tensor(2.0)}
    weights = Weights(of_file, Newer(None, (0, {}), (5, of_checkpoint)), resumed=True)
    told = []
    for _ in range(4):
        told.append((weights.there, weights.version))
        weights.take_newer()
    assert told == [(False, 0), (False, 0), (True, 0), (True, 5)] and weights.tensors is of_checkpoint
    resumed = Weights(of_file, Newer((5, of_checkpoint)), resumed=True)
    assert not resumed.there
    resumed.take_newer()
    assert resumed.there and resumed.version == 5
    assert Weights(of_file).there and not Weights(None, Newer((0, {}))).there
    assert Weights(of_file, Newer(None)).there


@pytest.mark.parametrize("questions", [1, 2])
def test_answer_carries_the_version_of_the_weights(questions: int) -> None:
    asked = Asked(*(question(number, 1, 2) for number in range(questions)))
    function = Function.__new__(Function)
    function.name, function.takes_weights, function._process = "net:answer", True, os.getpid()
    function._call = lambda inputs, weights: {"y": inputs["x"] * weights["w"]}
    Serving(asked, function, Weights(None, Newer((7, {"w": torch.tensor(2.0)}))), 100, 0.0, asked.said.append).serve()
    assert asked.versions == [7] * questions and asked.answers[0] == [2, 4]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (torch.zeros(2), "returned an object of Tensor"),
        ({}, r"answer returned no 'y', which a solver requests. The names that it returned: none\."),
        ({"z": 0, 1: 0}, r"returned no 'y', which a solver requests. The names that it returned: 'z', 1\. Return all"),
        ({"y": None}, "it is an object of NoneType"),
        ({"y": torch.ones(2).to_sparse()}, "output 'y': it is of layout torch.sparse_coo. Return a dense tensor"),
        ({"y": torch.ones(2, device="meta")}, "output 'y': it is on the device 'meta'"),
        ({"y": [1, 2]}, "it is an object of list"),
        ({"y": torch.zeros(1)}, r"its shape is \[1\], not \[2\]"),
        ({"y": torch.zeros(2, dtype=torch.float64)}, "its dtype is torch.float64, but solvers request torch.float32"),
    ],
)
def test_invalid_return_values_of_the_function_are_refused(returned: object, said: str) -> None:
    with pytest.raises(FunctionError, match=said):
        serve(Asked(question(1, 1, 2)), lambda inputs: returned)


def test_a_function_is_found_by_its_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found_net.py").write_text(
        "def plain(inputs): return inputs\ndef weighed(inputs, weights): return inputs\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert not Function("found_net:plain").takes_weights and Function("found_net:weighed").takes_weights
    with pytest.raises(MpidataError, match="module 'found_net' has no function 'none'"):
        Function("found_net:none")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number", "that is an object of int. Name a function"),
        ("later", "that is a coroutine function"),
        ("two", r"its parameters are \(inputs, more\). It is called as answer\(inputs\)"),
        ("none", r"its parameters are \(\)"),
    ],
)
def test_invalid_inference_functions_are_refused(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (tmp_path / "wrong_net.py").write_text(
        "number = 3\nasync def later(inputs): pass\ndef two(inputs, more): pass\ndef none(): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MpidataError, match=f"inference.function is 'wrong_net:{name}', but {said}"):
        Function(f"wrong_net:{name}")


def test_lazy_conjugate_outputs_are_resolved() -> None:
    """Conjugates and tensors made from them share the memory of the original."""
    values = torch.tensor([1 + 2j, 3 - 4j])
    complex_y = Array("y", torch.complex64, np.dtype(np.complex64), ())
    asked = Asked(
        question(1, 1, 2),
        dataclasses.replace(question(2, 1, 2), shape=Shape(2, (X,), (complex_y,), (8,), (16,), ("x",))),
    )
    serve(asked, lambda inputs: {"y": values.conj() if len(asked.answers) else values.conj().imag})
    assert asked.answers == {1: [-2, 4], 2: [1 - 2j, 3 + 4j]}


@pytest.mark.parametrize(
    ("ends", "status", "said"), [("return None", 1, "returned"), ("raise OSError(3)", 1, "raised OS"), ("exit", 0, "")]
)
def test_forked_child_does_not_continue_as_the_inference_rank(tmp_path: Any, ends: str, status: int, said: str) -> None:
    (tmp_path / "forks.py").write_text(
        "import os, sys\n"
        "def answer(inputs):\n"
        "    if not (child := os.fork()):\n"
        f"        {'sys.exit()' if ends == 'exit' else ends}\n"
        "    print('child', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    return {}\n"
        "from mpidata.inference.function import Function\n"
        "print('parent', Function('forks:answer')({}, None, (), 1))\n"
    )
    done = subprocess.run([sys.executable, "-u", "forks.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert [line for line in done.stdout.splitlines() if line.startswith("child")][-1] == f"child {status}", done
    assert done.stdout.endswith("parent []\n") and f"forks:answer has forked {said}" * bool(said) in done.stderr, done


def test_weights_file_must_hold_a_dict_of_dense_tensors(tmp_path: Any) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "good.pt")
    torch.save({"w": torch.ones(2), "n": 3}, tmp_path / "bad.pt")
    torch.save({"s": torch.ones(2).to_sparse()}, tmp_path / "sparse.pt")
    (tmp_path / "text.pt").write_text("name: job\n")
    assert read_weights(str(tmp_path / "good.pt"))["w"].tolist() == [1, 1]
    with pytest.raises(MpidataError, match="does not hold a dict of tensors: 'n' is an object of int"):
        read_weights(str(tmp_path / "bad.pt"))
    with pytest.raises(MpidataError, match="holds 's', which is of layout torch.sparse_coo"):
        read_weights(str(tmp_path / "sparse.pt"))
    with pytest.raises(MpidataError, match=r"text.pt, does not only contain tensors \(\w+\). Write it with torch.save"):
        read_weights(str(tmp_path / "text.pt"))
    with pytest.raises(MpidataError, match="cannot be read: FileNotFoundError"):
        read_weights(str(tmp_path / "none.pt"))
