"""Requests and answers: each is taken once, and only if it is valid."""

import json
from pathlib import Path

import pytest

from mpidata.errors import MpidataError
from mpidata.run.folder import RunFolder
from mpidata.run.scale_requests import Answer, answer, ask, take, take_answer, withdraw


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.private.mkdir(0o700)
    return folder


def test_requests_and_answers_are_read_once(run: RunFolder) -> None:
    first, second = ask(run, 1, "loaders", 5), ask(run, 1, "groups", 3)
    assert {request.number for request in take(run, 1)} == {first.number, second.number}
    assert list(take(run, 1)) == [] and take_answer(run, first) is None
    answer(run, second, Answer(True, "No."))
    answer(run, first, Answer(False, "Yes."))
    assert take_answer(run, first) == Answer(False, "Yes.") and take_answer(run, second) == Answer(True, "No.")
    assert list(run.private.iterdir()) == []


def test_withdrawn_and_outdated_requests_are_ignored(run: RunFolder) -> None:
    withdraw(run, ask(run, 2, "loaders", 5))
    ask(run, 1, "loaders", 5)
    assert list(take(run, 2)) == [] and list(run.private.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        '{"number": "NUMBER"}',
        '{"number": "NUMBER", "attempt": 1, "kind": "loaders", "count": "5"}',
        '{"number": "NUMBER", "attempt": 1, "kind": "loaders", "count": true}',
        '{"number": "0000000000000000", "attempt": 1, "kind": "loaders", "count": 5}',
        '{"number": "NUMBER", "attempt": 1, "kind": "loaders", "count": 5, "more": 1}',
    ],
)
def test_invalid_requests_are_removed(run: RunFolder, text: str) -> None:
    number = "123456789abcdef0"
    (run.private / f"scale-{number}").write_text(text.replace("NUMBER", number))
    assert list(take(run, 1)) == [] and list(run.private.iterdir()) == []


def test_requests_writable_by_others_are_ignored(run: RunFolder) -> None:
    request = ask(run, 1, "loaders", 5)
    (run.private / f"scale-{request.number}").chmod(0o666)
    assert list(take(run, 1)) == []


def test_other_files_are_left_alone(run: RunFolder) -> None:
    kept = [run.private / name for name in ("plan", "scale-1", ".scale-123456789abcdef0.0.new")]
    for path in kept:
        path.write_text(json.dumps({}))
    assert list(take(run, 1)) == [] and all(path.exists() for path in kept)


def test_invalid_answer_raises_an_error(run: RunFolder) -> None:
    request = ask(run, 1, "loaders", 5)
    (run.private / f"scaled-{request.number}").write_text("{")
    with pytest.raises(MpidataError, match="Cannot read the answer"):
        take_answer(run, request)
