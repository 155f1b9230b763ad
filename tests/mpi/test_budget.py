"""buffer.repeats sets the number of batches, whichever side is slower, and no job stalls over it."""

import math

import pytest
from jobs import JobFolder, Result, python, read_counts


def job(
    folder: JobFolder, repeats: float, trainers: int, batch: int = 4, capacity: int = 8, count: int = 60, **pace: float
) -> Result:
    """Run simulations of 3 and 2 steps in turn: of two trainers, one gets half as many samples again as the other."""
    folder.variables = {"SLEEP_S": str(pace.get("solver_s", 0))}
    folder.job(
        trainers={"ranks": trainers, "program": python("trainers/count_draws.py", batch, pace.get("train_s", 0))},
        solvers={"groups": 2, "function": "functions.unequal:simulate"},
        parameters={"count": count, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "reservoir", "capacity": capacity, "watermark": 2, "repeats": repeats},
    )
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    return result


def check(result: Result, repeats: float, trainers: int, batch: int = 4, count: int = 60) -> None:
    received, batches = sum(result.summary["samples"]["per_trainer"]), result.summary["batches"]
    assert received == count // 2 * 5
    allowed = math.floor(round(repeats * received, 6)) // (trainers * batch)
    excess = batches.get("excess", 0)
    assert batches["per_trainer"] == [allowed + excess] * trainers, (allowed, batches)
    by_draws = result.summary["samples"]["by_draws"]
    draws = sum(times * samples for times, samples in enumerate(by_draws))
    assert sum(by_draws) == received and draws == (allowed + excess) * trainers * batch
    for trainer in range(trainers):
        told = read_counts(result, trainer)
        assert told["alike"] == 1 and told["batches"] == allowed + excess


@pytest.mark.parametrize(
    ("repeats", "trainers", "pace"),
    [
        (2.5, 2, {}),
        (1.05, 1, {"solver_s": 0.002}),
        *(
            pytest.param(repeats, trainers, pace, marks=pytest.mark.full)
            for repeats in (1, 1.05, 2.5)
            for trainers in (1, 2, 3)
            for pace in ({}, {"solver_s": 0.01}, {"train_s": 0.01})
        ),
    ],
)
def test_number_of_batches_matches_the_draw_budget(
    folder: JobFolder, repeats: float, trainers: int, pace: dict[str, float]
) -> None:
    check(job(folder, repeats, trainers, **pace), repeats, trainers)


@pytest.mark.full
@pytest.mark.parametrize(("batch", "capacity"), [(1, 2), (4, 4), (16, 200), (5, 1000)])
def test_draw_budget_holds_with_small_and_large_buffers(folder: JobFolder, batch: int, capacity: int) -> None:
    check(job(folder, 2, 2, batch, capacity), 2, 2, batch)


@pytest.mark.full
def test_draws_are_not_concentrated_on_the_last_samples(folder: JobFolder) -> None:
    # Training is far slower than the solvers, which wait for it: all samples are drawn about as often.
    result = job(folder, 4, 1, capacity=16, count=200, train_s=0.005)
    check(result, 4, 1, count=200)
    told = read_counts(result)
    assert told["most"] < 40 and told["distinct"] == 500


@pytest.mark.parametrize("window", [1, 3])
def test_a_full_reservoir_keeps_samples_of_all_simulations(folder: JobFolder, window: int) -> None:
    folder.job(
        trainers={"program": python("trainers/count_draws.py", 8, 0)},
        solvers={"groups": 2, "function": "functions.steps:simulate"},
        parameters={"count": 80, "space": {"alpha": [0.0, 1.0]}},
        samples={"window": window},
        buffer={"policy": "reservoir", "capacity": 160, "watermark": 2, "repeats": 4},
    )
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    # If the reservoir replaced random samples, its mean sample would be of one of the last 8 to 16 simulations.
    assert read_counts(result)["old"] >= 20
