"""Solver ranks are killed at random moments of the heat example: the job completes, with every sample exactly once."""

from collections.abc import Callable
from pathlib import Path

import kill_campaign
import pytest
from heat2d_job import write_heat2d_job
from jobs import DRAIN, JobFolder, python
from killing import STEPS, WAYS, Killer, check_exactly_once, events_of


def kill_and_check(
    folder: JobFolder, built: Path, kills: int, seed: int, count: int, timeout: float, **solvers: object
) -> None:
    program = python("trainers/census/census.py", kills, str(count * STEPS // 2))
    write_heat2d_job(folder, built, count, solvers, program=program)
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


# Three ranks a group with 10 MB samples for three trainers; many samples, recorded.
SEEDS = (316, pytest.param(279, marks=pytest.mark.full))


@pytest.mark.full
def test_kills_with_start_split_lose_no_sample(folder: JobFolder, built_heat2d: Path) -> None:
    kill_and_check(folder, built_heat2d, kills=3, seed=1, count=50, timeout=100, ranks_per_group=2, spares=1)


@pytest.mark.full
def test_kills_with_start_spawn_lose_no_sample(folder: JobFolder, built_heat2d: Path) -> None:
    kill_and_check(folder, built_heat2d, kills=2, seed=2, count=50, timeout=100, start="spawn")


@pytest.mark.full
def test_kills_of_spawned_groups_in_mpi_init_lose_no_sample(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    """mpirun may be unable to start groups after that; then another start of the job helps."""
    solvers = {"program": [str(compiled("dies_in_init")), "5"], "start": "spawn", "groups": 2, "retries": 5}
    folder.job(
        trainers=DRAIN,
        solvers=solvers,
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run("--restarts", "3", timeout=400)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["received"] == 18 and not result.summary["set_aside"]
    failed = [event["error"] for event in events_of(folder.path) if event["event"] == "spawn_failed"]
    killed = [error for error in failed if "was killed by SIGKILL" in error]
    assert len(killed) == 5, failed


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_ten_kills_lose_no_sample(folder: JobFolder, built_heat2d: Path, seed: int) -> None:
    start, ranks = ("split", "spawn")[seed % 2], 1 + seed // 2 % 2
    solvers = {"start": start, "ranks_per_group": ranks} | ({"spares": 1} if start == "split" else {})
    kill_and_check(folder, built_heat2d, kills=10, seed=seed, count=1000, timeout=300, **solvers)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kills_lose_no_sample(folder: JobFolder, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    built = tmp_path_factory.mktemp("campaign")
    kill_campaign.build(built)
    print(kill_campaign.draw(seed))
    print(kill_campaign.run_draw(folder, built, seed))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_random_kills_lose_no_window(folder: JobFolder, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    built = tmp_path_factory.mktemp("campaign")
    kill_campaign.build(built)
    print(kill_campaign.draw_windows(seed))
    print(kill_campaign.run_draw(folder, built, seed, windows=True))
