import json
import os
from pathlib import Path

import pytest

from mpidata.events import Events, write_json


def test_one_json_object_a_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = Events(path, clock=lambda: 12.3456789)
    log.write("dispatch", simulation=3, group=1)
    log.write_numbers("simulation_complete", simulation=4, steps=-5)
    log.write("error", error='two\nlines and a "quote" é')
    assert path.read_bytes() == b""
    log.flush()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"time": 12.345679, "event": "dispatch", "simulation": 3, "group": 1}
    assert json.loads(lines[1]) == {"time": 12.345679, "event": "simulation_complete", "simulation": 4, "steps": -5}
    assert json.loads(lines[2])["error"] == 'two\nlines and a "quote" é'
    assert len(lines) == 3
    log.close()


def test_note_is_flushed_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.jsonl"
    Events(path).note("group_left", group=2, reason="over")
    assert json.loads(path.read_text())["event"] == "group_left"
    assert capsys.readouterr().out == 'group left group=2 reason="over"\n'


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        log = Events(path)
        log.write("start")
        log.close()
    assert len(path.read_text().splitlines()) == 2


def test_json_without_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"loss": float("nan"), "more": [1.5, float("-inf"), {"x": (float("inf"), 2)}]})

    def refuse(text: str) -> None:
        raise AssertionError(text)

    assert json.loads(path.read_text(), parse_constant=refuse) == {"loss": None, "more": [1.5, None, {"x": [None, 2]}]}


@pytest.mark.parametrize("durable", [False, True])
def test_json_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"n": 1}, durable)
    seen = []

    def replace(source: Path, target: Path) -> None:
        seen.append((json.loads(Path(source).read_text()), json.loads(Path(target).read_text())))
        os.rename(source, target)

    monkeypatch.setattr("mpidata.events.os.replace", replace)
    write_json(path, {"n": 2}, durable)
    assert seen == [({"n": 2}, {"n": 1})]
    assert json.loads(path.read_text()) == {"n": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
