"""Losses from the events of a run, including its resumptions."""

import json
from pathlib import Path
from typing import Any

from mpidata.run.logged_losses import read_first_loss, read_losses


def write_events(path: Path, *events: tuple[str, dict[str, Any]]) -> Path:
    lines = [json.dumps({"time": 1.5, "event": name, **values}) + "\n" for name, values in events]
    with open(path, "a") as file:
        file.writelines(lines)
    return path


def test_losses_are_read_back_from_the_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_events(
        path,
        ("start", {"world": 4}),
        ("retry", {"simulation": 9}),
        ("group_lost", {"group": 9}),
        ("start", {"world": 4}),
        ("group_lost", {"group": 0}),
        ("retry", {"simulation": 1, "how": 'said "event": "start"'}),
    )
    with open(path, "a") as file:
        file.write('{"time": 1.4, "event": "retry", "parameters": {}\n')
    write_events(path, ("set_aside", {"simulation": 2}))
    with open(path, "a") as file:
        file.write('{"time": 1.5, "event": "retry", "simul')
    assert read_losses(path) == {
        "lost_groups": 1,
        "retries": [{"simulation": 1, "how": 'said "event": "start"'}],
        "set_aside": [{"simulation": 2}],
    }


def test_losses_before_a_resume_count(tmp_path: Path) -> None:
    path = write_events(
        tmp_path / "events.jsonl",
        ("start", {}),
        ("retry", {"simulation": 1}),
        ("start", {}),
        ("resume", {"checkpoint": 1}),
        ("retry", {"simulation": 2}),
    )
    assert [entry["simulation"] for entry in read_losses(path)["retries"]] == [1, 2]


def test_trainer_changes_before_a_resume_count(tmp_path: Path) -> None:
    path = write_events(
        tmp_path / "events.jsonl",
        ("start", {}),
        ("trainer_lost", {"trainer": 9, "left": 2}),
        ("start", {}),
        ("trainer_lost", {"trainer": 1, "left": 2}),
        ("run_again", {"simulation": 4}),
        ("run_again", {"simulation": 5, "group": 2}),  # its group had died
        ("trainer_joined", {"trainer": 3}),
        ("start", {}),
        ("resume", {"checkpoint": 1}),
        ("trainer_lost", {"trainer": 1, "left": 2}),
        ("trainer_retired", {"trainer": 0}),
        ("run_again", {"simulation": 4}),
    )
    found = read_losses(path)
    assert found.pop("lost_trainers") == [1, 1] and found.pop("joined_trainers") == [3]
    assert found.pop("retired_trainers") == [0] and found.pop("run_again") == 2
    assert found == {"lost_groups": 0, "retries": [], "set_aside": []}


def test_simulations_stay_set_aside_until_a_retry_is_requested(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_losses(path)["set_aside"] == []
    write_events(path, ("start", {}), ("set_aside", {"simulation": 2}), ("start", {}))
    assert read_losses(path)["set_aside"] == [{"simulation": 2}]
    write_events(path, ("resume", {"checkpoint": 1}), ("set_aside", {"simulation": 4}))
    assert read_losses(path)["set_aside"] == [{"simulation": 2}, {"simulation": 4}]
    write_events(path, ("retry_set_aside", {"simulations": [2, 4]}), ("start", {}), ("set_aside", {"simulation": 4}))
    assert read_losses(path)["set_aside"] == [{"simulation": 4}]


def test_first_loss_is_that_of_the_last_start(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_first_loss(path) is None
    lines = [
        {"event": "start"},
        {"event": "group_lost", "group": 7, "how": "was killed"},
        {"event": "start"},
        {"event": "dispatch"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_first_loss(path) is None
    with open(path, "a") as file:
        for group in (1, 2):
            file.write(json.dumps({"event": "group_lost", "group": group, "how": "was silent"}) + "\n")
    assert read_first_loss(path) == {"event": "group_lost", "group": 1, "how": "was silent"}


def test_cancelled_simulations_stay_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_events(path, ("start", {}), ("simulation_cancelled", {"simulation": 2, "steps": 5}), ("start", {}))
    write_events(
        path, ("retry_set_aside", {"simulations": []}), ("simulation_cancelled", {"simulation": 4, "steps": 0})
    )
    assert read_losses(path)["cancelled"] == [2, 4]
