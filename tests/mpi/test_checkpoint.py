"""A checkpoint of a running job, and jobs that continue it: together they use every sample once."""

import io
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from jobs import JobFolder, Result, python, sets

from mpidata.checkpoint import newest_valid, path_of, received
from mpidata.checkpoint.restore import open_all
from mpidata.checkpoint.trainer_file import TrainerFile

SIMULATIONS, STEPS = 16, 12


def again(folder: JobFolder, run: Path, trainers: int) -> Result:
    """Continue the run with `trainers` trainers."""
    result = folder.resume(run, *sets(f"trainers.ranks={trainers}"), timeout=80)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    return result


def used(folder: JobFolder, trainers: int) -> Counter[tuple[int, int]]:
    return Counter(
        (simulation, step) for samples in folder.read_notes("used", trainers) for simulation, step in samples
    )


ALL = Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))


FIRO = {"policy": "firo", "capacity": 20, "watermark": 6, "tail": "drop"}


def run_until_checkpoint(
    folder: JobFolder,
    buffer: dict[str, object] = FIRO,
    trainers: int = 2,
    at_batch: int = 5,
    sleep_s: float = 0.02,
    batch: int = 4,
) -> Path:
    """Run the job until its first checkpoint, of this batch or one of the next, exists; returns the run folder."""
    folder.variables = {"STEPS": str(STEPS), "SLEEP_S": str(sleep_s), "BATCH": str(batch)}
    folder.job(
        trainers={"ranks": trainers, "program": python("trainers/checkpoint/note_used.py", at_batch)},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 1},
        buffer=buffer,
    )
    result = folder.run(timeout=80)
    assert result.status == 0 and result.summary["status"] == "stopped" and result.run is not None, result.logs()
    assert newest_valid(result.run / "checkpoints") == (1, []), result.logs()
    assert [path.name for path in (result.run / "checkpoints").iterdir()] == ["000001"]
    return result.run


def history(file: TrainerFile) -> list[tuple[int, int]]:
    """Return what the trainer's script had used when the checkpoint was taken."""
    samples = torch.load(io.BytesIO(file.state()["used"].contents), weights_only=False)["samples"]
    return [(simulation, step) for simulation, step in samples]


def test_checkpoint_and_resume_use_every_sample_once(folder: JobFolder) -> None:
    run = run_until_checkpoint(folder)
    checkpoint = path_of(run / "checkpoints", 1)
    with open_all(checkpoint) as files:
        (batch,) = {file.head.batch for file in files}
        assert batch >= 5
        for file in files:
            samples = sum(file.head.count)
            expected = file.rows("parameters", 0, samples)[:, 0] + file.step
            assert np.array_equal(file.rows("fields/u", 0, samples)[:, 3, 5], expected.astype(np.float32))
            before = history(file)
            held = list(zip(file.simulation.tolist(), file.step.tolist(), strict=True))[: samples - file.head.count[3]]
            assert len(before) == 4 * batch
            assert len({*before, *held}) == len(before) + len(held) == file.head.statistics[0]
    assert set(received(checkpoint).tolist()) == {-1, STEPS} and len(received(checkpoint)) == SIMULATIONS + 1

    second = again(folder, run, trainers=2)
    assert f"resumed {batch} {4 * batch}" in second.log("trainer", 0)
    assert used(folder, 2) == ALL
    assert second.summary["samples"]["received"] == len(ALL) and second.summary["samples"]["validation"] == STEPS
    assert second.summary["batches"]["per_trainer"] == [len(ALL) // 8] * 2


def check_other_trainers(folder: JobFolder, policy: str, tail: str, before: int, after: int, late: bool) -> None:
    buffer = {"policy": policy, "capacity": 20, "tail": tail} | ({} if policy == "fifo" else {"watermark": 6})
    at_batch = len(ALL) // 4 // before - 8 if late else 5  # some batches before the last one
    run = run_until_checkpoint(folder, buffer, before, at_batch)
    with open_all(path_of(run / "checkpoints", 1)) as files:
        histories = [history(file) for file in files]
    assert len(histories) == before
    result = again(folder, run, trainers=after)
    assert result.summary["samples"]["received"] == len(ALL) and result.summary["samples"]["validation"] == STEPS
    # Trainer i has continued the history of trainer i modulo the former number of trainers.
    for trainer in range(after, before):
        (folder.path / f"used-{trainer}.json").write_text(json.dumps(histories[trainer]))
    found = used(folder, max(after, before))
    for trainer in range(before, after):
        found.subtract(Counter(histories[trainer % before]))
    repeats = sum(found.values()) - len(+found)
    if tail == "repeat":
        assert +found == found and set(found) == set(ALL), "each is used"
        assert policy == "reservoir" or repeats <= 8 * max(after, before) + len(ALL) // 8
    else:  # samples that do not fill a batch on all trainers are left out
        assert policy == "reservoir" or repeats == 0
        assert len(ALL) - len(+found) < 4 * after + len(ALL) // 8


@pytest.mark.parametrize(
    ("policy", "before", "after"), [("fifo", 2, 1), pytest.param("reservoir", 1, 3, marks=pytest.mark.full)]
)
def test_resume_with_another_number_of_trainers_repeats_the_tail(
    folder: JobFolder, policy: str, before: int, after: int
) -> None:
    check_other_trainers(folder, policy, "repeat", before, after, late=False)


@pytest.mark.full
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_resume_works_with_any_number_of_trainers_policy_and_tail(
    folder: JobFolder, policy: str, tail: str, before: int, after: int, late: bool
) -> None:
    check_other_trainers(folder, policy, tail, before, after, late)


def test_checkpoint_is_taken_at_the_current_batch_not_the_last_granted_one(folder: JobFolder) -> None:
    run = run_until_checkpoint(folder, {"policy": "fifo", "capacity": 400}, sleep_s=0, batch=1)
    (taken,) = [event for event in map(json.loads, (run / "events.jsonl").open()) if event["event"] == "checkpoint"]
    assert 5 <= taken["batch"] <= 12  # of 96 batches, of which 64 are granted


@pytest.mark.full
def test_checkpoint_pauses_training_no_longer_than_a_copy_of_the_buffer(folder: JobFolder) -> None:
    """The buffer has 2 GiB; the test needs twice that, and room on the disk."""
    folder.job(
        trainers={"program": python("trainers/checkpoint/hold_up.py")},
        solvers={"function": "functions.megabytes:simulate"},
        parameters={"count": 100, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [512, 512]}},
        buffer={"policy": "reservoir", "capacity": 2048, "watermark": 10},
    )
    result = folder.run(timeout=300)
    assert result.status == 0 and result.run is not None, result.logs()
    measured = json.loads((folder.path / "held-up.json").read_text())
    print(measured)
    assert len(measured["held_up_s"]) == 1 and measured["held_up_s"][0] <= 1.2 * measured["memcpy_s"]
    checkpoint = path_of(result.run / "checkpoints", 1)
    assert newest_valid(checkpoint.parent) == (1, []) and (checkpoint / "trainer-0000.h5").stat().st_size > 2 << 30
    shutil.rmtree(checkpoint)  # pytest keeps the folder
