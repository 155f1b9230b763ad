"""Loaders join, are replaced however they end, and leave with the trainers."""

from jobs import JobFolder, python


def write(folder: JobFolder, trainer: str, trainers: int, **loaders: object) -> None:
    program = python(f"trainers/loaders/{trainer}.py")
    folder.write_job({"trainers": {"ranks": trainers, "program": program}, "loaders": loaders})


def test_lost_loaders_are_replaced_by_a_spare_then_a_spawned_loader(folder: JobFolder) -> None:
    write(folder, "lose_two", 1, spares=1, timeout_s=1, start_timeout_s=1)
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["loaders"] == {"joined": 3, "lost": 2}
    events = result.events()
    lost = [(event["loader"], event["cause"]) for event in events if event["event"] == "loader_lost"]
    assert lost == [(0, "signal"), (1, "silent")]
    assert [event["loader"] for event in events if event["event"] == "loader_left"] == [2]


def test_lost_spawned_loader_is_replaced(folder: JobFolder) -> None:
    write(folder, "lose_second", 2, ranks=2, start="spawn")
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["loaders"] == {"joined": 3, "lost": 1}


def test_loader_death_without_fault_tolerance_fails_the_job(folder: JobFolder) -> None:
    write(folder, "lose_one", 1, spares=1)
    result = folder.run("--set", "launch.fault_tolerance=false", timeout=60)
    assert result.status == 1 and result.summary["status"] == "failed", result.logs()
    assert result.summary["error"].startswith("Loader 0 (rank 2) was killed by SIGKILL"), result.logs()
