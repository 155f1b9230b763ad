"""Solver ranks are killed at random moments of the heat example: the job completes, with every sample exactly once."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from jobs import PROGRAMS, JobFolder, environment
from killing import HEAT2D, WAYS, Killer, counted_samples, expected_samples

STEPS = 100


@pytest.fixture(scope="module")
def heat2d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heat2d")
    for source in ("heat2d.c", "Makefile", "heat2d.yaml"):
        shutil.copy(HEAT2D / source, folder)
    done = subprocess.run(["make", "-B", "heat2d"], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    command = ["mpicc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", PROGRAMS / "kill_switch.c"]
    done = subprocess.run([*command, "-o", folder / "kill_switch.so", "-ldl"], env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder


def write_job(folder: JobFolder, built: Path, count: int, solvers: dict, **keys: object) -> None:
    shutil.copytree(built, folder.path, dirs_exist_ok=True)
    job = yaml.safe_load((built / "heat2d.yaml").read_text())
    job["name"] = "job"
    job["trainers"] = {"ranks": 2, "program": ["python", str(PROGRAMS / "census.py")]}
    program = ["env", f"LD_PRELOAD={folder.path / 'kill_switch.so'}", "./heat2d"]
    job["solvers"] = {"groups": 2, "program": program, "timeout_s": 2, "retries": 20} | solvers
    job["parameters"]["count"] = count
    job["validation"] = {"count": 0}
    job["buffer"] = {"policy": "fifo", "capacity": 500, "tail": "repeat"}
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job | keys))


def check_exactly_once(folder: JobFolder, run: Path, count: int) -> None:
    counted = counted_samples(folder.path, trainers=2)
    expected = expected_samples(run, count)
    assert len(expected) == count * STEPS
    assert counted.keys() == expected.keys(), f"missing: {sorted(expected.keys() - counted.keys())[:10]}"
    for key, prints in counted.items():
        # `tail: repeat` gives one trainer a sample again if the other has one more.
        assert set(prints) == {expected[key]}, f"sample {key} is not the one that was sent"
    repeated = {key: len(prints) for key, prints in counted.items() if len(prints) > 1}
    assert sum(repeated.values()) - len(repeated) <= 1, f"given twice: {repeated}"


def kill_and_check(
    folder: JobFolder, built: Path, kills: int, seed: int, count: int, timeout: float, **solvers: object
) -> None:
    write_job(folder, built, count, solvers)
    layout = {"ranks_per_group": int(solvers.get("ranks_per_group", 1)), "trainers": 2}
    killer = Killer(folder.path, kills, seed, **layout)
    killer.start()
    result = folder.run(timeout=timeout)
    killer.stop()
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    assert len(killer.killed) == kills, f"the job ended after {len(killer.killed)} kills"
    check_exactly_once(folder, result.run, count)
    summary = result.summary
    assert summary["samples"]["received"] == count * STEPS
    assert summary["simulations"]["complete"] == count and not summary["set_aside"]
    assert summary["lost_groups"] == kills
    told = {entry["group"]: entry["cause"] for entry in summary["retries"]}
    for group, way in killer.killed:
        # A rank that is stopped or ends while its group has nothing to do costs no try.
        assert told.get(group, WAYS[way]) == WAYS[way], f"group {group}, signal {way}: {told}"


def test_kills_in_the_split_start(folder: JobFolder, heat2d: Path) -> None:
    kill_and_check(folder, heat2d, kills=3, seed=1, count=50, timeout=100, ranks_per_group=2, spares=1)


def test_kills_in_the_spawn_start(folder: JobFolder, heat2d: Path) -> None:
    kill_and_check(folder, heat2d, kills=2, seed=2, count=50, timeout=100, start="spawn")


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("start", ["split", "spawn"])
def test_ten_kills(folder: JobFolder, heat2d: Path, start: str, seed: int) -> None:
    solvers = {"start": start, "ranks_per_group": 1 + seed % 2} | ({"spares": 1} if start == "split" else {})
    kill_and_check(folder, heat2d, kills=10, seed=seed, count=200, timeout=300, **solvers)
