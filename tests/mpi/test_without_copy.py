"""Batches of a fifo buffer are handed out where they were received."""

import json
from typing import Any

import pytest
from jobs import JobFolder, python


def run(folder: JobFolder, batch_size: int, rows: int, steps: int = 16, **keys: Any) -> dict[str, Any]:
    trainer = python("trainers/checks/check_without_copy.py", batch_size)
    solver = python("solvers/timing/waits_for_start.py", steps, rows)
    solvers = keys.pop("solvers", {})
    folder.job(
        trainers={"program": trainer},
        solvers={"program": solver, **solvers},
        parameters={"count": 12, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [rows, 16]}, "v": {"dtype": "float64", "shape": []}},
        buffer={"policy": "fifo", "capacity": 24, **keys.pop("buffer", {})},
        **keys,
    )
    result = folder.run(timeout=100)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    seen: dict[str, Any] = json.loads((folder.path / "seen.json").read_text())
    assert seen["wrong"] == 0, seen
    return seen


def whole(steps: int) -> list[list[int]]:
    return [[simulation, step] for simulation in range(12) for step in range(steps)]


@pytest.mark.parametrize("rows", [4, 2048])  # packed, and each by itself
def test_batches_of_one_group_are_not_copied(folder: JobFolder, rows: int) -> None:
    seen = run(folder, 8, rows)
    assert seen["seen"] == whole(16) and seen["batches"] == 24
    assert seen["pages"] == 24


def test_single_samples_are_not_copied(folder: JobFolder) -> None:
    seen = run(folder, 0, 100, solvers={"groups": 2})
    assert seen["seen"] == whole(16) and seen["pages"] == 12 * 16


# Rank 0 of a group has three quarters: of 48 KB, that is too large to be packed, though half of it would be packed.
@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        pytest.param(groups, rows, marks=[] if (groups, rows) == (1, 768) else pytest.mark.full)
        for groups in (1, 2)
        for rows in (8, 768, 4096)
    ],
)
def test_samples_of_groups_with_two_ranks_arrive_once(folder: JobFolder, rows: int, groups: int) -> None:
    seen = run(folder, 8, rows, solvers={"groups": groups, "ranks_per_group": 2}, validation={"count": 2})
    assert seen["seen"] == whole(16)
    # One of two groups may always be behind, so that samples of each page come too late for its batch.
    assert groups > 1 or seen["pages"] >= 1


@pytest.mark.parametrize(
    "buffer", [{"tail": "repeat"}, pytest.param({"policy": "firo"}, marks=pytest.mark.full), {"policy": "reservoir"}]
)
def test_samples_that_may_be_drawn_again_are_copied(folder: JobFolder, buffer: dict[str, Any]) -> None:
    seen = run(folder, 8, 4, steps=17, buffer=buffer)
    assert seen["pages"] == 0
    assert {tuple(one) for one in seen["seen"]} == {tuple(one) for one in whole(17)} or buffer.get("policy")


@pytest.mark.full
def test_record_is_unaffected_by_scripts_that_modify_batches(folder: JobFolder) -> None:
    """The script writes into its batches while they may wait for the disk."""
    from mpidata import RecordedDataset

    run(folder, 8, 1024, record={"path": "samples"})
    dataset = RecordedDataset(folder.path / "samples")
    assert len(dataset) == 12 * 16
    for i in range(len(dataset)):
        sample = dataset[i]
        assert bool((sample["u"] == float(1000 * sample["simulation"] + sample["step"])).all())
