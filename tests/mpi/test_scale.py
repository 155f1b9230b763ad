"""`mpidata scale`: loaders and groups come and go while a job runs, and nothing is lost or seen twice."""

import dataclasses
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import loader_campaign
import pytest
from jobs import BIN, JobFolder, environment
from killing import events_of


def count(folder: Path, event: str) -> int:
    return sum(each["event"] == event for each in events_of(folder))


def wait_for(what: Callable[[], bool], timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def scale(folder: JobFolder, *wanted: str) -> "subprocess.CompletedProcess[str]":
    command = [BIN / "mpidata", "scale", "runs/job/1", *wanted]
    return subprocess.run(command, cwd=folder.path, env=environment(), capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("dataset", ["FileDataset", pytest.param("DataLoader", marks=pytest.mark.full)])
def test_three_loaders_come_and_four_go(folder: JobFolder, dataset: str) -> None:
    draw = loader_campaign.draw(7, kills=3)
    one = dataclasses.replace(
        draw, dataset=dataset, shuffle="rows" if dataset == "FileDataset" else True, share=True, drop_last=False,
        trainers=1, batch_size=10, epochs=3, loaders=2, start="split", spares=0, step_s=0.002, work_s=0.0,
    )  # fmt: skip
    loader_campaign.write_job(folder, one)
    kills = folder.path / "kills"  # the trainers wait at each quarter for another byte in it
    kills.touch()
    started = time.monotonic()
    process = folder.start()
    wait_for(lambda: count(folder.path, "loader_joined") == 2)
    done = scale(folder, "--loaders", "5")
    assert done.returncode == 0 and "5 loaders from now on, there were 2: 3 to be started." in done.stdout, done
    wait_for(lambda: count(folder.path, "loader_joined") == 5)
    kills.write_text("x")
    refused = scale(folder, "--groups", "2")
    assert refused.returncode == 1 and "it has no solvers" in refused.stderr, refused
    done = scale(folder, "--loaders", "1")
    assert done.returncode == 0 and "there were 5: 4 leave when they are done." in done.stdout, done
    kills.write_text("xx")
    wait_for(lambda: count(folder.path, "loader_left") == 4)
    kills.write_text("xxx")
    result = folder.finish(process, timeout=60, started=started)
    folder.assert_nothing_left()
    assert result.status == 0 and result.summary["loaders"] == {"joined": 5, "lost": 0}, result.logs()
    loader_campaign.check_rows(one, folder.path)
    ended = scale(folder, "--loaders", "2")
    assert ended.returncode == 1 and "does not run any more" in ended.stderr, ended
