"""Slow trainers block the solvers, trainers sleep while solvers are slow, and nothing waits forever."""

import pytest
from jobs import JobFolder, python, read_counts


def peaks(log: str) -> int:
    values = dict(line.split() for line in log.splitlines() if line.startswith(("before", "after")))
    return int(values["after"]) - int(values["before"])


def test_slow_trainer_loses_no_sample_and_memory_stays_bounded(folder: JobFolder) -> None:
    capacity, in_flight, sample_mb = 16, 4, 4
    folder.job(
        trainers={"program": python("trainers/large_samples.py")},
        solvers={"groups": 2, "program": python("solvers/python/large_samples.py"), "in_flight": in_flight},
        fields={"u": {"dtype": "float32", "shape": [1024, 1024]}},
        buffer={"policy": "fifo", "capacity": capacity},
    )
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    assert "distinct 160" in result.log("trainer")
    assert peaks(result.log("trainer")) < capacity * sample_mb + 200
    for solver in range(2):
        assert peaks(result.log("solver", solver)) < in_flight * sample_mb + 100


def test_trainer_sleeps_while_the_solver_is_slow(folder: JobFolder) -> None:
    folder.variables = {"STEPS": "2", "SLEEP_S": "3"}
    folder.job(
        trainers={"program": python("trainers/cpu_share.py")},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    share, seconds = map(float, result.log("trainer").split("share")[1].split()[:2])
    assert seconds > 2.5
    assert share < 0.10


@pytest.mark.parametrize(
    ("buffer", "tail"),
    [
        ({"policy": "fifo"}, "drop"),
        ({"policy": "firo", "watermark": 2}, "repeat"),
        pytest.param({"policy": "reservoir"}, "drop", marks=pytest.mark.full),
        pytest.param({"policy": "fifo"}, "repeat", marks=pytest.mark.full),
        pytest.param({"policy": "firo", "watermark": 2}, "drop", marks=pytest.mark.full),
        pytest.param({"policy": "reservoir"}, "repeat", marks=pytest.mark.full),
    ],
)
def test_trainers_with_unequal_shares_draw_equally_many_batches(
    folder: JobFolder, buffer: dict[str, object], tail: str
) -> None:
    # Trainer 0 gets half as many samples again as trainer 1; the difference is far more than its buffer holds.
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/count_draws.py", 4, 0)},
        solvers={"groups": 2, "function": "functions.unequal:simulate"},
        parameters={"count": 120, "space": {"alpha": [0.0, 1.0]}},
        buffer={**buffer, "capacity": 8, "tail": tail},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["per_trainer"] == [180, 120], result.summary
    drawn = [read_counts(result, trainer) for trainer in range(2)]
    batches = [counts["batches"] for counts in drawn]
    assert batches[0] == batches[1] == result.summary["batches"]["per_trainer"][0]
    if buffer["policy"] != "reservoir":
        assert batches[0] == (30 if tail == "drop" else 45)
        assert drawn[0]["distinct"] == 4 * batches[0]
        assert drawn[1]["distinct"] == 120


def test_wait_for_one_array_does_not_wait_for_others(folder: JobFolder) -> None:
    """One array has been taken and others are under way, because the trainer draws nothing yet."""
    folder.job(
        trainers={"program": python("trainers/waits_for_one.py")},
        solvers={"program": python("solvers/python/waits_for_one.py"), "in_flight": 24},
        fields={"u": {"dtype": "float32", "shape": [512, 512]}},
        parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 4},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert "\n24\n" in f"\n{result.log('trainer')}", result.logs()
    assert float(result.log("solver").split("all")[1]) > 0.5
