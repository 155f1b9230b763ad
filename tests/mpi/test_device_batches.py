"""Batches reach a stand-in for a device whole, each sample once, also over a kill and a resume."""

import json
from collections import Counter
from typing import Any

import pytest
from exact_job import write_parts
from jobs import JobFolder, Result, python

SIMULATIONS, STEPS = 12, 10
ALL = Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))
BUFFERS: dict[str, dict[str, Any]] = {
    "fifo": {"policy": "fifo", "capacity": 24},
    "firo": {"policy": "firo", "capacity": 30, "watermark": 8},
    "reservoir": {"policy": "reservoir", "capacity": 30, "watermark": 8},
}


def write_job(folder: JobFolder, buffer: str, trainers: dict[str, int] | None = None, **options: Any) -> None:
    folder.variables = {"STEPS": str(STEPS), "SLEEP_S": "0.002"}
    program = python("trainers/device/note_used.py", json.dumps({"batch_size": 3, **options}))
    folder.job(
        trainers={"ranks": 2, "program": program, **(trainers or {})},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        buffer=BUFFERS[buffer],
        samples={"statistics": True},
    )


def check(result: Result, notes: list[dict[str, Any]], buffer: str) -> None:
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    used = Counter((simulation, step) for note in notes for simulation, step in note["samples"])
    assert set(used) <= set(ALL) and (buffer == "reservoir" or max(used.values()) == 1)
    assert len(ALL) - len(used) < 3 * len(notes) + len(ALL) // 8, "but what does not make a batch on all"
    batches = [len(note["samples"]) // 3 for note in notes]
    assert result.summary["batches"]["per_trainer"] == batches and len(set(batches)) == 1


@pytest.mark.parametrize("prefetch", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "buffer", ["fifo", *(pytest.param(of, marks=pytest.mark.full) for of in ("firo", "reservoir"))]
)
def test_each_sample_is_used_once_and_statistics_agree(folder: JobFolder, buffer: str, prefetch: int) -> None:
    write_job(folder, buffer, prefetch=prefetch, statistics=True, pages=True)
    result = folder.run(timeout=80)
    notes = folder.read_notes("used", 2)
    check(result, notes, buffer)
    assert all(note["ahead"] > 3 for note in notes), [note["ahead"] for note in notes]
    assert notes[0]["statistics"] == notes[1]["statistics"] and notes[0]["statistics"][-1][0] > 0


@pytest.mark.parametrize(
    ("buffer", "prefetch"),
    [("fifo", 2), *(pytest.param(*of, marks=pytest.mark.full) for of in [("firo", 1), ("reservoir", 2)])],
)
def test_a_resumed_job_has_each_sample_once(folder: JobFolder, buffer: str, prefetch: int) -> None:
    write_job(folder, buffer, prefetch=prefetch, checkpoint=5, pages=True, mode="copies at once")
    killed = folder.run(timeout=80)
    assert killed.status != 0 and killed.run is not None, killed.logs()
    checkpoints = [event for event in killed.events() if event["event"] == "checkpoint"]
    assert len(checkpoints) == 1 and 5 <= checkpoints[0]["batch"] <= 9, "both have asked after the same batch"
    result = folder.resume(killed.run, timeout=80)
    notes = folder.read_notes("used", 2)
    check(result, notes, buffer)
    assert {note["resumed"] for note in notes} == {checkpoints[0]["batch"]}


def test_prefetched_batches_do_not_count_as_drawn_after_a_break(folder: JobFolder) -> None:
    write_job(folder, "firo", leave=6, prefetch=2)
    result = folder.run(timeout=80)
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    assert result.summary["batches"]["per_trainer"] == [6, 6]
    assert [len(note["samples"]) for note in folder.read_notes("used", 2)] == [18, 18]


def test_the_ranks_of_a_replica_have_the_same_batches(folder: JobFolder) -> None:
    write_job(folder, "firo", trainers={"ranks": 4, "ranks_per_replica": 2})
    result = folder.run(timeout=80)
    notes = folder.read_notes("used", 4)
    check(result, notes[::2], "firo")
    for first, mate in (notes[:2], notes[2:]):
        assert first["samples"] == mate["samples"] and first["ahead"] == mate["ahead"] == 0


@pytest.mark.parametrize("each", [1, 2])
def test_rows_of_files_and_a_dataloader_arrive_once_per_epoch(folder: JobFolder, each: int) -> None:
    write_parts(folder, [31, 20, 12])
    options = {"parts": str(folder.path / "parts" / "*.npz"), "rows": 41}
    program = python("trainers/device/note_rows.py", json.dumps(options))
    trainers = {"ranks": 2 * each, "ranks_per_replica": each, "program": program}
    folder.write_job({"trainers": trainers, "loaders": {"ranks": 1}})
    result = folder.run(timeout=80)
    assert result.status == 0, result.logs()
    written = folder.read_notes("rows", 2 * each)
    notes = written[::each]
    assert written == [note for note in notes for _ in range(each)], "the ranks of a replica have the same"
    for epoch in range(2):
        assert sorted(row for note in notes for row in note["files"][epoch]) == list(range(1, 64))
        assert sorted(row for note in notes for row in note["loader"][epoch]) == list(range(41))
