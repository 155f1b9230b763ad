"""A run folder that cannot be written does not end the job: one notice reports it; missing data is written later."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import JobFolder, python

SIMULATIONS = 100


@pytest.fixture
def small_disk(folder: JobFolder, require: Callable[[str], str]) -> Iterator[Path]:
    """Yield the output folder of a job: a file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    path = folder.path / "runs"
    path.mkdir()
    subprocess.run([require("mount"), "-t", "tmpfs", "-o", "size=1m", "mpidata-test", path], check=True)
    yield path
    subprocess.run([require("umount"), "--lazy", path], check=True)


def job(folder: JobFolder, room_at_batch: int, **keys: object) -> None:
    folder.job(
        trainers={"program": python("trainers/fill_disk.py", room_at_batch)},
        solvers={"program": python("solvers/python/zeros.py")},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        **keys,
    )


def test_full_disk_does_not_stop_the_training(folder: JobFolder, small_disk: Path) -> None:
    job(folder, room_at_batch=1000)
    result = folder.run()
    assert (folder.path / "drawn").read_text() == str(8 * SIMULATIONS // 4), result.logs()
    said = f"mpidata: {result.run} cannot be written: No space left on device. The job continues"
    assert result.output.count(said) == 1, result.output
    # All samples were trained on, but nothing on the disk records it.
    assert result.status == 1 and result.summary == {}
    assert f"Cannot write {result.run}/summary.json: No space left on device" in result.output, result.output
    assert f"{SIMULATIONS} of {SIMULATIONS} complete" in result.output and "800 for training" in result.output
    assert "killed together" not in result.output, result.output


def test_missing_data_is_written_when_the_disk_has_room_again(folder: JobFolder, small_disk: Path) -> None:
    job(folder, room_at_batch=130, checkpoint={"every_s": 0.5})
    result = folder.run()
    assert (result.status, result.summary["status"]) == (0, "complete"), result.logs()
    assert result.output.count("cannot be written: No space left on device") == 1, result.output
    events = result.events()
    names = [event["event"] for event in events]
    assert names.count("simulation_complete") == SIMULATIONS and names[-1] == "end"
    (failed,) = [event for event in events if event["event"] == "disk_failed"]
    assert failed["reason"] == "No space left on device" and failed["lost"] == 0 and failed["seconds"] > 0.5
    assert "checkpoint_failed" in names
    assert names.index("checkpoint_failed") < len(names) - names[::-1].index("checkpoint"), names
