"""Every sample arrives exactly once, whole, with its parameters, whatever carries it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import JobFolder, Result, python

FIELDS = {
    "line": {"dtype": "float64", "shape": [37]},
    "plane": {"dtype": "float32", "shape": [13, 70]},
    "cube": {"dtype": "float32", "shape": [5, 4, 900]},
    "whole": {"dtype": "int64", "shape": [3]},
    "scalar": {"dtype": "float64", "shape": []},
}
STEPS, SIMULATIONS, VALIDATION = 8, 24, 4


def seen(folder: JobFolder, trainers: int) -> list[dict[str, list[list[int]]]]:
    return folder.read_notes("seen", trainers)


def expected(first: int, last: int) -> Counter[tuple[int, int]]:
    return Counter((s, step) for s in range(first, last) for step in range(STEPS + s % 3))


def run(
    folder: JobFolder, solver: Path, trainers: int, groups: int, ranks: int, batch: int, *extra: str, **keys: object
) -> Result:
    folder.job(
        trainers={"ranks": trainers, "program": python("trainers/checks/check_pattern.py", batch)},
        solvers={"groups": groups, "ranks_per_group": ranks, "program": [str(solver), str(STEPS), *extra]},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
        validation={"count": VALIDATION},
        fields={**FIELDS, "cube": {"dtype": "float32", "shape": [5, 4, int(extra[1]) if extra else 900]}},
        **keys,
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    return result


# Samples of 80 KB go block by block, those of 5 KB several to a message.
@pytest.mark.parametrize(
    "extra",
    [
        ("iput", "900"),
        ("copy", "9"),
        pytest.param(("copy", "900"), marks=pytest.mark.full),
        pytest.param(("iput", "9"), marks=pytest.mark.full),
    ],
)
def test_every_sample_arrives_once_with_three_trainers_and_five_groups(
    folder: JobFolder, compiled: Callable[[str], Path], extra: tuple[str, ...]
) -> None:
    result = run(
        folder,
        compiled("pattern"),
        3,
        5,
        2,
        1,
        *extra,
        buffer={"policy": "firo", "capacity": 20, "watermark": 5, "tail": "repeat"},
    )
    came = seen(folder, 3)
    drawn = Counter((s, step) for trainer in came for s, step in trainer["seen"])
    assert set(drawn) == set(expected(0, SIMULATIONS))
    for trainer in came:  # only the tail repeats
        counts = Counter(map(tuple, trainer["seen"]))
        assert sum(counts.values()) - len(counts) <= max(len(t["seen"]) for t in came) - len(counts)
    assert Counter((s, step) for t in came for s, step in t["validation"]) == expected(
        SIMULATIONS, SIMULATIONS + VALIDATION
    )
    assert len({trainer["batches"] for trainer in came}) == 1
    assert result.summary["samples"]["received"] == sum(expected(0, SIMULATIONS).values())
    assert result.summary["samples"]["validation"] == sum(expected(SIMULATIONS, SIMULATIONS + VALIDATION).values())
    assert result.summary["simulations"] == {"requested": 28, "complete": 28, "failed": 0}


@pytest.mark.parametrize("ranks", [1, 4])
def test_one_trainer_draws_all_samples_in_order_of_arrival(
    folder: JobFolder, compiled: Callable[[str], Path], ranks: int
) -> None:
    run(folder, compiled("pattern"), 1, 1, ranks, 0, buffer={"policy": "fifo", "capacity": 16})
    (came,) = seen(folder, 1)
    assert Counter(map(tuple, came["seen"])) == expected(0, SIMULATIONS)
    # One group runs one simulation after the other, and fifo keeps the order.
    assert [s for s, _ in came["seen"]] == sorted(s for s, _ in came["seen"])


def test_tail_is_dropped_equally_on_all_trainers(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    run(folder, compiled("pattern"), 2, 3, 1, 7, buffer={"policy": "fifo", "capacity": 30})
    came = seen(folder, 2)
    counts = [Counter(map(tuple, trainer["seen"])) for trainer in came]
    assert max(max(count.values()) for count in counts) == 1
    assert len(came[0]["seen"]) == len(came[1]["seen"])
    shares = [sum((s + step) % 2 == t for s, step in expected(0, SIMULATIONS)) for t in range(2)]
    assert came[0]["batches"] == came[1]["batches"] == min(shares) // 7
