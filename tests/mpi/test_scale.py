"""`mpidata scale`: loaders and groups join and leave while a job runs, and nothing is lost or seen twice."""

import contextlib
import dataclasses
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import loader_campaign
import pytest
from heat2d_job import write_heat2d_job
from jobs import BIN, JobFolder, environment, python
from killing import STEPS, Killer, check_exactly_once, events_of


def count(folder: Path, event: str) -> int:
    return sum(each["event"] == event for each in events_of(folder))


def wait_for(what: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def scale(folder: JobFolder, *wanted: str) -> "subprocess.CompletedProcess[str]":
    command = [BIN / "mpidata", "scale", "runs/job/1", *wanted]
    return subprocess.run(command, cwd=folder.path, env=environment(), capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    ("dataset", "most"),
    [
        ("FileDataset", 3),
        pytest.param("FileDataset", 5, marks=pytest.mark.full),
        pytest.param("DataLoader", 5, marks=pytest.mark.full),
    ],
)
def test_scaling_loaders_up_and_down_loses_no_row(folder: JobFolder, dataset: str, most: int) -> None:
    """Scale from two loaders to `most`, and to one."""
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
    done = scale(folder, "--loaders", str(most))
    assert done.returncode == 0 and f" from now on, there were 2: {most - 2} to be started." in done.stdout, done
    wait_for(lambda: count(folder.path, "loader_joined") == most)
    kills.write_text("x")
    refused = scale(folder, "--groups", "2")
    assert refused.returncode == 2 and "it has no solvers" in refused.stderr, refused
    done = scale(folder, "--loaders", "1")
    assert done.returncode == 0 and f"there were {most}: {most - 1} to stop when done." in done.stdout, done
    kills.write_text("xx")
    wait_for(lambda: count(folder.path, "loader_left") == most - 2 and count(folder.path, "rests") == 1)
    kills.write_text("xxx")
    result = folder.finish(process, timeout=60, started=started)
    folder.assert_nothing_left()
    assert result.status == 0 and result.summary["loaders"] == {"joined": most, "lost": 0}, result.logs()
    loader_campaign.check_rows(one, folder.path)


class Scaler(threading.Thread):
    """Asks for other numbers of loaders, or groups, at random moments."""

    def __init__(self, folder: JobFolder, kind: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.told: list[str] = []
        self._kind = kind
        self._folder = folder
        self._random = random.Random(f"scale {seed}")
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._random.uniform(0.2, 1.5)):
            if count(self._folder.path, "start"):
                done = scale(self._folder, self._kind, str(self._random.randint(1, 6)))
                assert done.returncode == 0 or "mpidata: " in done.stderr, done
                self.told.append(done.stdout.strip() or done.stderr.strip())

    def stop(self) -> None:
        self._ended.set()
        self.join(60)


@contextlib.contextmanager
def scaled(folder: JobFolder, kind: str, seed: int) -> Iterator[None]:
    scaler = Scaler(folder, kind, seed)
    scaler.start()
    try:
        yield
    finally:
        scaler.stop()
        print(*scaler.told, sep="\n")
    assert any("from now on" in sentence for sentence in scaler.told)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 104))
def test_scaling_loaders_while_some_are_killed_loses_no_row(folder: JobFolder, tmp_path: Path, seed: int) -> None:
    with scaled(folder, "--loaders", seed):
        print(loader_campaign.draw(seed), loader_campaign.run_draw(folder, tmp_path, seed))


@pytest.mark.full
@pytest.mark.parametrize("start", ["split", "spawn"])
def test_scaling_groups_while_some_are_killed_loses_no_sample(
    folder: JobFolder, built_heat2d: Path, start: str
) -> None:
    solvers = {"start": start, "ranks_per_group": 2, "timeout_s": 20, "start_timeout_s": 20}
    program = python("trainers/census/census.py", "5", str(100 * STEPS // 2))
    write_heat2d_job(folder, built_heat2d, 100, solvers, program=program)
    killer = Killer(folder.path, 5, 1, ranks_per_group=2, trainers=2)
    killer.start()
    with scaled(folder, "--groups", 1):
        result = folder.run(timeout=200)
    killer.stop()
    assert result.status == 0 and result.run is not None, result.logs()
    assert result.summary["lost_groups"] == len(killer.killed) and result.summary["simulations"]["complete"] == 100
    check_exactly_once(folder, result.run, 100)


def test_scaling_groups_up_and_down_loses_no_sample(folder: JobFolder, built_heat2d: Path) -> None:
    program = python("trainers/census/census.py", "2", str(40 * STEPS // 2))
    write_heat2d_job(folder, built_heat2d, 40, {"spares": 1, "timeout_s": 20, "start_timeout_s": 20}, program=program)
    kills = folder.path / "kills"
    kills.touch()
    started = time.monotonic()
    process = folder.start()
    wait_for(lambda: count(folder.path, "simulation_complete") > 0)
    done = scale(folder, "--groups", "4")
    assert "4 groups from now on, there were 2: 1 of the spare ones and 1 to be started." in done.stdout, done
    wait_for(lambda: count(folder.path, "group_joined") == 1)
    done = scale(folder, "--groups", "1")
    assert "1 group from now on, there were 4: 3 to stop when done." in done.stdout, done
    kills.write_text("x")
    wait_for(lambda: count(folder.path, "group_left") + count(folder.path, "rests") == 3)
    kills.write_text("xx")
    result = folder.finish(process, timeout=60, started=started)
    folder.assert_nothing_left()
    assert result.status == 0 and result.run is not None, result.logs()
    assert result.summary["lost_groups"] == 0 and result.summary["simulations"]["complete"] == 40
    check_exactly_once(folder, result.run, 40)
