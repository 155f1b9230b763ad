"""A capacity in bytes is kept, and samples of very different sizes come once and correctly, also after a resume."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import random_fields
from jobs import DRAIN, JobFolder, Result, python, read_lines, sets
from test_misuse import assert_failed

LENGTHS = {"nodes": [0, 3000], "edges": [0, 30]}
FIELDS = {
    "u": {"dtype": "float64", "shape": ["nodes"]},
    "ends": {"dtype": "int32", "shape": [2, "edges"], "index": "some"},
    "drag": {"dtype": "float32", "shape": [3]},
    "x": {"dtype": "float32", "shape": ["some"]},
}
LARGEST = random_fields.most_bytes(FIELDS, LENGTHS | {"some": [1, 9]})


def write(folder: JobFolder, policy: str, window: int, capacity: float, dies: bool = False) -> tuple[Any, Any]:
    """Write a job whose buffers hold `capacity` samples of the greatest size."""
    spec = {
        "seed": 5, "ranks": 1, "steps": 12, "dies": dies, "lengths": LENGTHS | {"some": [1, 9]},
        "fields": FIELDS, "work_s": 0.0 if dies else 0.06,
    }  # fmt: skip
    keys = {
        "trainers": {"ranks": 2, "program": python("random_fields/trainer.py", random_fields.BATCH, window, 1)},
        "solvers": {"groups": 2, "program": python("random_fields/solver.py")},
        "parameters": {"count": 24 if dies else 8, "space": {"alpha": [0.0, 1.0]}},
        "validation": {"count": random_fields.VALIDATION},
        "fields": FIELDS,
        "samples": {"window": window},
        "buffer": {"policy": policy, "capacity": f"{capacity * window * LARGEST / 1000:.3f} KB"}
        | ({"watermark": 20} if policy != "fifo" else {})
        | ({"repeats": 1.5} if policy == "reservoir" else {}),
    }
    folder.job(**keys)
    (folder.path / "spec.json").write_text(json.dumps(spec))
    return keys, spec


def check_fill(result: Result, capacity: float, window: int) -> None:
    """The buffers had at most their capacity, or one batch, unless another trainer starved."""
    assert result.run is not None
    progress = json.loads((result.run / "progress.json").read_text())
    assert progress["capacity_in_bytes"] is True and progress["capacity"] == int(capacity * window * LARGEST)
    most = max(max(line["fill"]) for line in read_lines(result.run / "metrics.jsonl"))
    relieved = any(event["event"] == "relief" for event in result.events())
    assert relieved or most <= max(1.0, random_fields.BATCH / capacity)


@pytest.mark.parametrize(  # a batch has three samples
    ("policy", "window", "capacity"),
    [
        ("reservoir", 1, 6),
        *(
            pytest.param(*of, marks=pytest.mark.full)
            for of in (
                ("firo", 2, 1),
                ("fifo", 1, 1),
                ("fifo", 1, 6),
                ("firo", 1, 1),
                ("firo", 1, 6),
                ("reservoir", 1, 1),
                ("firo", 2, 6),
            )
        ),
    ],
)
def test_samples_arrive_once_and_correct_within_a_capacity_in_bytes(
    folder: JobFolder, policy: str, window: int, capacity: int
) -> None:
    keys, spec = write(folder, policy, window, capacity)
    result = folder.run(timeout=120)
    random_fields.check(folder, result, keys, spec)
    check_fill(result, capacity, window)


def test_sample_larger_than_the_capacity_fails_the_job(folder: JobFolder) -> None:
    write(folder, "fifo", 1, 0.5)
    folder.change_job(trainers=DRAIN)
    half = int(0.5 * LARGEST)
    assert_failed(
        folder.run(timeout=60),
        "The sample of simulation ",
        f"bytes, and buffer.capacity is {half} bytes. Raise buffer.cap",
    )


@pytest.mark.full  # the fast tests replay random fields with such a capacity
@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_a_replay_has_the_same_batches(folder: JobFolder, policy: str) -> None:
    keys, _ = write(folder, policy, 1, 2)
    folder.change_job(journal=True, trainers=keys["trainers"] | {"ranks": 1})  # a single trainer is never relieved
    first = folder.run(timeout=120)
    assert first.status == 0 and first.run is not None, first.logs()
    drawn = [note["drawn"] for note in folder.read_notes("seen", 1)]
    again = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)], timeout=120)
    assert again.status == 0, again.logs()
    assert [note["drawn"] for note in folder.read_notes("seen", 1)] == drawn


def died(folder: JobFolder, policy: str, window: int) -> tuple[Any, Any, Path]:
    keys, spec = write(folder, policy, window, 6, dies=True)
    result = folder.run(timeout=120)
    assert result.status == 1 and result.run is not None and "exit status 3" in result.output, result.logs()
    return keys, spec, result.run


@pytest.mark.full
@pytest.mark.parametrize(
    ("policy", "window", "capacity"),
    [
        ("firo", 1, f"{LARGEST / 1000:.3f} KB"),
        ("firo", 1, f"{6 * LARGEST / 1000:.3f} KB"),
        ("fifo", 2, f"{2 * LARGEST / 1000:.3f} KB"),
        ("firo", 1, "60"),
    ],
)
def test_resume_works_with_another_capacity(folder: JobFolder, policy: str, window: int, capacity: str) -> None:
    keys, spec, run = died(folder, policy, window)
    result = folder.resume(run, *sets(f"buffer.capacity={capacity}"), timeout=120)
    random_fields.check(folder, result, keys, spec)
    assert all(note["resumed"] > 0 for note in folder.read_notes("seen", 2))


@pytest.mark.full  # in the fast tests, constants go to another number of trainers
@pytest.mark.parametrize("trainers", [1, 3])
def test_resume_works_with_another_number_of_trainers(folder: JobFolder, trainers: int) -> None:
    """What the trainers have drawn since is correct, nothing comes twice, and nothing that was held is lost."""
    keys, _, run = died(folder, "firo", 1)
    result = folder.resume(run, *sets(f"trainers.ranks={trainers}"), timeout=120)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    notes = folder.read_notes("seen", trainers)
    own = Counter(tuple(step) for note in notes for step in note["drawn"][note["resumed"] * random_fields.BATCH :])
    batches = [note["resumed"] for note in notes]
    assert max(own.values()) == 1 and len(set(batches)) == 1 and batches[0] > 0
    every, before = keys["parameters"]["count"] * 12, 2 * batches[0] * random_fields.BATCH
    # All have equally many batches and samples to draw; the rest fills no batches.
    assert every - before - random_fields.BATCH * trainers <= len(own) <= every - before
