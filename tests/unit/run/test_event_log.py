import errno
import json
import os
from pathlib import Path

import pytest

from mpidata.run.event_log import Events, write_json


def test_each_line_is_one_json_object(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = Events(path, clock=lambda: 12.3456789)
    log.write("dispatch", simulation=3, group=1)
    log.of_numbers("simulation_complete", simulation="%d", steps="%d")(4, -5)
    log.write("error", error='two\nlines and a "quote" é')
    assert not path.exists()
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


def test_truncated_line_is_kept_separate(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "start"}\n{"event": "grou')
    Events(path).note("start")
    lines = path.read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[2])["event"] == "start"


def test_events_refused_by_a_full_disk_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, room, now, write = tmp_path / "events.jsonl", [100], [50.0], os.write

    def write_into_room(descriptor: int, data: bytearray) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, bytes(data[: room[0]]))
        room[0] -= written
        return written

    monkeypatch.setattr("mpidata.run.event_log.os.write", write_into_room)
    log = Events(path, clock=lambda: now[0], most_bytes=300)
    for number in range(10):
        log.write("dispatch", simulation=number)
    log.flush()
    assert log.problem is not None and log.problem.errno == errno.ENOSPC and path.stat().st_size == 100
    now[0] += 5
    log.note("end")
    assert path.stat().st_size == 100
    room[0] = 10000
    log.flush()
    assert log.problem is None
    events = [json.loads(line) for line in path.read_text().splitlines()]
    *kept, failed = events
    assert [event.get("simulation") for event in kept] == [*range(len(kept) - 1), None] and 5 <= len(kept) < 10
    assert failed == {
        "time": 55.0,
        "event": "disk_failed",
        "reason": "No space left on device",
        "seconds": 5.0,
        "lost": 11 - len(kept),
    }


def test_events_wait_until_the_folder_exists(tmp_path: Path) -> None:
    log = Events(tmp_path / "run" / "events.jsonl")
    log.note("start")
    assert log.problem is not None
    (tmp_path / "run").mkdir()
    log.note("end")
    names = [json.loads(line)["event"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert names == ["start", "end", "disk_failed"]


def test_failed_json_write_leaves_no_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError):
        write_json(tmp_path / "a.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_json_contains_null_instead_of_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"loss": float("nan"), "more": [1.5, float("-inf"), {"x": (float("inf"), 2)}]})

    def refuse(text: str) -> None:
        raise AssertionError(text)

    assert json.loads(path.read_text(), parse_constant=refuse) == {"loss": None, "more": [1.5, None, {"x": [None, 2]}]}


@pytest.mark.parametrize("durable", [False, True])
def test_json_is_replaced_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"n": 1}, durable)
    seen = []

    def replace(source: Path, target: Path) -> None:
        seen.append((json.loads(Path(source).read_text()), json.loads(Path(target).read_text())))
        os.rename(source, target)

    monkeypatch.setattr("mpidata.run.event_log.os.replace", replace)
    write_json(path, {"n": 2}, durable)
    assert seen == [({"n": 2}, {"n": 1})]
    assert json.loads(path.read_text()) == {"n": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
