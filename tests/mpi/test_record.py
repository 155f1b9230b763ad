"""A record holds what the solvers sent, whatever the disk does, and does not affect the training."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import test_checkpoint
import torch
from jobs import JobFolder, python
from test_exactness import FIELDS, SIMULATIONS, STEPS, VALIDATION, expected

from mpidata import RecordedDataset

KB, MB = 1 << 10, 1 << 20


def check_pattern(dataset: RecordedDataset, parameters: np.ndarray) -> list[tuple[int, int]]:
    """Compare every element with what pattern.c sends; returns which samples there are."""
    found = []
    for i in range(len(dataset)):
        sample = dataset[i]
        simulation, step = int(sample["simulation"]), int(sample["step"])
        assert sample["time"].dtype == torch.float64 and float(sample["time"]) == 0.25 * step
        assert sample["parameters"].tolist() == parameters[simulation].tolist()
        for name, field in dataset.fields.items():
            index = torch.arange(int(np.prod(field.shape))).reshape(field.shape)
            expected_values = (4096 * simulation + 64 * step + index % 61).to(getattr(torch, field.dtype))
            assert sample[name].dtype == expected_values.dtype
            assert torch.equal(sample[name], expected_values), (name, simulation, step)
        found.append((simulation, step))
    return found


@pytest.mark.parametrize("every", [1, pytest.param(3, marks=pytest.mark.full)])
def test_record_holds_the_samples_that_were_sent(
    folder: JobFolder, compiled: Callable[[str], Path], every: int
) -> None:
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/drain.py", 4)},
        solvers={"groups": 2, "ranks_per_group": 2, "program": [str(compiled("pattern")), str(STEPS)]},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
        validation={"count": VALIDATION},
        fields=FIELDS,
        buffer={"policy": "firo", "capacity": 20, "watermark": 5},
        record={"path": "samples", "every": every},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    parameters = np.loadtxt(result.run / "parameters.csv", delimiter=",", skiprows=1)[:, 1:]
    for validation, first, last in ((False, 0, SIMULATIONS), (True, SIMULATIONS, SIMULATIONS + VALIDATION)):
        dataset = RecordedDataset(folder.path / "samples", validation=validation)
        assert dataset.parameter_names == ("alpha", "beta")
        assert list(dataset.fields) == sorted(FIELDS)  # as job.yaml has them
        found = check_pattern(dataset, parameters)
        assert found == sorted(key for key in expected(first, last) if key[1] % every == 0)
    assert "recorded" in result.log("trainer", 0), result.logs()
    assert sorted(path.name for path in (folder.path / "samples").iterdir()) == ["trainer-0000.h5", "trainer-0001.h5"]


NUMBERS = python("solvers/python/puts_numbers.py", 30, 256, 1024)


@pytest.mark.full
@pytest.mark.parametrize("when_slow", ["slow_down", "skip"])
@pytest.mark.parametrize("rows", [256, "rows"])
def test_slow_disk_delays_solvers_or_skips_samples(folder: JobFolder, when_slow: str, rows: int | str) -> None:
    folder.job(
        trainers={"program": python("trainers/record/slow_disk.py")},
        solvers={"program": NUMBERS},
        fields={"u": {"dtype": "float32", "shape": [rows, 1024]}},
        record={"path": "samples", "when_slow": when_slow},
        buffer={"policy": "fifo", "capacity": 10},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    log = result.log("trainer")
    assert "drawn 120" in log, result.logs()
    dataset = RecordedDataset(folder.path / "samples")
    for i in range(len(dataset)):
        sample = dataset[i]
        assert torch.all(sample["u"] == 30 * sample["simulation"] + sample["step"])
    # 8 by the limit, and those that one rank may have in flight
    assert int(log.partition("most ")[2].split()[0]) <= 8 + 4, log
    assert log.count(f"(record.when_slow: {when_slow})") == 1, log
    if when_slow == "slow_down":
        assert len(dataset) == 120
        assert result.seconds > 120 * 0.02
        assert "the solvers waited for the disk for" in log
    else:
        assert 10 <= len(dataset) < 120
        assert f"recorded {len(dataset)} samples" in log and f", {120 - len(dataset)} were skipped" in log
    for name, value in (("samples", len(dataset)), ("skipped", 120 - len(dataset))):
        assert result.summary["record"][name] == value


def test_full_disk_stops_the_record_but_not_the_training(folder: JobFolder) -> None:
    folder.job(
        trainers={"program": python("trainers/record/full_disk.py")},
        solvers={"program": NUMBERS},
        fields={"u": {"dtype": "float32", "shape": [256, 1024]}},
        record={"path": "samples"},
        buffer={"policy": "fifo", "capacity": 2},
    )
    result = folder.run()
    assert result.status == 1, result.logs()
    log = result.log("trainer")
    assert "drawn 120" in log and "the model is saved" in log, result.logs()
    sentence = f"Recording to {folder.path}/samples/trainer-0000.h5 has stopped: File too large."
    assert result.summary["status"] == "failed" and result.summary["error"].startswith(sentence), result.logs()
    assert sentence in log and sentence in result.output, result.logs()
    assert result.summary["simulations"]["complete"] == 4
    dataset = RecordedDataset(folder.path / "samples")
    assert 5 < len(dataset) < 20
    assert all(torch.all(s["u"] == 30 * s["simulation"] + s["step"]) for s in (dataset[i] for i in range(len(dataset))))


@pytest.mark.full
@pytest.mark.parametrize("trainers", [2, 3])
def test_record_is_complete_after_a_trainer_kill_and_resume(folder: JobFolder, trainers: int) -> None:
    """The record lags behind: if the checkpoint did not wait for it, samples of the checkpoint would be missing."""
    folder.write(sitecustomize="from preloads import slow_record\nslow_record.slow_down(call_s=0.4)\n")
    folder.variables = {"STEPS": str(test_checkpoint.STEPS), "SLEEP_S": "0.02"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/checkpoint/note_used.py", 5, "killed")},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": test_checkpoint.SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 1},
        buffer={"policy": "firo", "capacity": 20, "watermark": 6, "tail": "drop"},
        record={"path": "samples"},
    )
    first = folder.run()
    assert first.status != 0, first.logs()
    before = len(RecordedDataset(folder.path / "samples"))
    assert 40 < before < len(test_checkpoint.ALL)
    last = test_checkpoint.again(folder, first.run, trainers)
    assert last.summary["record"]["samples"] == len(test_checkpoint.ALL) + 12  # of both starts
    for validation, wanted in ((False, sorted(test_checkpoint.ALL)), (True, [(16, step) for step in range(12)])):
        dataset = RecordedDataset(folder.path / "samples", validation=validation)
        samples = [dataset[i] for i in range(len(dataset))]
        assert [(int(s["simulation"]), int(s["step"])) for s in samples] == wanted
        assert all(torch.all(s["u"] == (s["parameters"] + s["step"]).float()) for s in samples)
    assert len(list((folder.path / "samples").iterdir())) == 2 + trainers
