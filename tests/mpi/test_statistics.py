"""Statistics of the fields match NumPy, are the same on all trainers, and count each step once."""

import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import JobFolder, python, sets
from test_windows import FIELDS

COUNT, STEPS, VALIDATION = 8, 12, 2
AXES = {"plane": 1, "cube": -3}


def write(folder: JobFolder, solver: Path, *, trainers: int, groups: int = 2, ranks: int = 1, batch: int = 2,
          after: int = 3, work: float = 0.0, how: str = "copy", **keys: Any) -> None:  # fmt: skip
    program = python("trainers/checks/check_statistics.py", batch, after, work)
    samples = {"statistics": AXES, **keys.pop("samples", {})}
    folder.job(
        trainers={"ranks": trainers, "program": program},
        solvers={"groups": groups, "ranks_per_group": ranks, "program": [str(solver), str(STEPS), how, "9"]},
        parameters={"count": COUNT, "space": {"alpha": [0.0, 1.0], "beta": {"choices": [5, 6, 4]}}},
        validation={"count": VALIDATION},
        fields=FIELDS,
        samples=samples,
        **keys,
    )


def expected(name: str, steps: Callable[[int], range]) -> np.ndarray[Any, Any]:
    """Return all values of a field of pattern.c, [n, *shape] float64."""
    shape = tuple(FIELDS[name]["shape"])  # type: ignore[arg-type]
    index = np.arange(int(np.prod(shape, dtype=int))).reshape(shape) % 61
    return np.stack([4096.0 * s + 64.0 * step + index for s in range(COUNT) for step in steps(s)])


def agree(found: dict[str, dict[str, Any]], steps: Callable[[int], range] = lambda s: range(STEPS + s % 3)) -> None:
    for name, of in found.items():
        values = expected(name, steps)
        axis = AXES.get(name)
        if axis is not None:
            values = np.moveaxis(values, axis % len(FIELDS[name]["shape"]) + 1, -1)  # type: ignore[arg-type]
            values = values.reshape(-1, values.shape[-1])
        over = None if axis is None else 0
        close = {"rtol": 0, "atol": 1e-12 * float(np.sqrt(np.mean(np.square(values))))}
        np.testing.assert_allclose(of["mean"], values.mean(over), **close)
        np.testing.assert_allclose(of["std"], values.std(over), **close)
        assert np.array_equal(of["min"], values.min(over)) and np.array_equal(of["max"], values.max(over))
        assert np.array_equal(of["count"], np.full(np.shape(of["count"]), values.size // np.size(of["count"])))
        assert not np.any(of["not_finite"])


def results(folder: JobFolder, trainers: int) -> list[dict[str, Any]]:
    found = folder.read_notes("result", trainers)
    assert all(of == found[0] for of in found)
    return found


def histories(folder: JobFolder, trainers: int, first: int = 0) -> list[list[str]]:
    return [(folder.path / f"statistics-{first}-{t}").read_text().splitlines() for t in range(trainers)]


def draw(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    window = rng.choice([1, 1, 2, 3])
    policy = rng.choice(["fifo", "firo", "reservoir"])
    buffer = {"policy": policy, "capacity": rng.choice([8, 40]) * window, "watermark": 0, "tail": "repeat"}
    samples = {"window": window, "stride": rng.randint(1, 2), "run": 5} if window > 1 else {}
    return {
        "trainers": rng.randint(1, 3), "groups": rng.randint(1, 3), "ranks": rng.choice([1, 2, 4]),
        "how": rng.choice(["copy", "iput"]), "batch": rng.choice([1, 2, 5]), "buffer": buffer, "samples": samples,
    }  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, *[pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 15)]])
def test_statistics_match_numpy_and_agree_on_all_trainers(
    folder: JobFolder, compiled: Callable[[str], Path], seed: int
) -> None:
    drawn = draw(seed)
    print(drawn)
    trainers = drawn["trainers"]
    write(folder, compiled("pattern"), **drawn)
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    found = results(folder, trainers)[0]
    agree(found["end"])
    assert found["ranges"] == {"alpha": [0.0, 1.0], "beta": [4.0, 6.0]}
    plane = expected("plane", lambda s: range(STEPS + s % 3))
    assert found["whole"]["mean"] == pytest.approx(plane.mean(), rel=1e-12)
    of_each = histories(folder, trainers)
    assert len(of_each[0]) >= 3 and all(lines == of_each[0] for lines in of_each)
    assert result.run is not None
    written = json.loads((result.run / "statistics.json").read_text())
    assert written["channel_axes"] == {"plane": 1, "cube": 0}
    assert written["fields"]["plane"]["mean"] == found["end"]["plane"]["mean"]


@pytest.mark.parametrize(("before", "after"), [(2, 3), pytest.param(3, 1, marks=pytest.mark.full)])
def test_statistics_continue_after_a_resume(
    folder: JobFolder, compiled: Callable[[str], Path], before: int, after: int
) -> None:
    keys: dict[str, Any] = {"buffer": {"policy": "fifo", "capacity": 20, "tail": "repeat"}, "how": "slow", "work": 0.02}
    write(folder, compiled("pattern"), trainers=before, **keys)
    started, process = time.monotonic(), folder.start()
    while not (folder.path / "statistics-0-0").exists() or len(histories(folder, 1)[0]) < 8:
        assert process.poll() is None and time.monotonic() < started + 60
        time.sleep(0.05)
    process.terminate()
    first = folder.finish(process, timeout=60, started=started)
    assert first.summary["status"] == "stopped", first.logs()
    frozen = json.loads((folder.path / "result-0.json").read_text())["frozen"]
    assert first.run is not None
    second = folder.resume(first.run, *sets(f"trainers.ranks={after}"), timeout=120)
    assert second.status == 0, second.logs()
    found = results(folder, after)[0]
    agree(found["end"])
    assert found["frozen"] == frozen
    (resumed,) = {int(path.name.split("-")[1]) for path in folder.path.glob("statistics-*")} - {0}
    of_each = histories(folder, after, resumed)
    assert all(lines == of_each[0] for lines in of_each)


def test_retried_steps_count_once_and_not_finite_values_separately(folder: JobFolder) -> None:
    folder.job(
        trainers={"program": python("trainers/checks/end_statistics.py")},
        solvers={"groups": 2, "function": "functions.failing.not_finite:simulate", "retries": 4},
        parameters={"sampler": "grid", "space": {"alpha": {"values": [1, 2, 3]}}},
        fields={"u": {"dtype": "float64", "shape": [4, 6]}},
        samples={"statistics": True},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    assert len(result.summary["retries"]) == 3
    found = json.loads((folder.path / "result.json").read_text())
    values = np.array([np.arange(24.0) + step + 100 * alpha for alpha in (1, 2, 3) for step in range(20)])
    values[:, 0] = [5.0 if step % 5 == 4 else np.nan for step in range(20)] * 3
    good = values[np.isfinite(values)]
    assert found["count"] == len(good) and found["not_finite"] == 48
    assert found["mean"] == pytest.approx(good.mean(), rel=1e-12) and found["std"] == pytest.approx(
        good.std(), rel=1e-12
    )
    assert (found["min"], found["max"]) == (good.min(), good.max())
    assert re.search("'u' has none for the channels of axis 1. Name the axis in the job file", result.logs())
