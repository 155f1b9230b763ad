"""Windows of several steps: each element is right, and each window comes once, however it is sent."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import h5py
import numpy as np
import pytest
from jobs import JobFolder, Result, python, read_lines, sets

from mpidata import RecordedDataset

FIELDS = {
    "line": {"dtype": "float64", "shape": [37]},
    "plane": {"dtype": "float32", "shape": [13, 70]},
    "cube": {"dtype": "float32", "shape": [5, 4, 9]},
    "whole": {"dtype": "int64", "shape": [3]},
    "scalar": {"dtype": "float64", "shape": []},
}
VALIDATION = 4


def windows(simulations: Iterable[int], steps: int, samples: dict[str, int]) -> Counter[tuple[int, int]]:
    """All windows of these simulations of pattern.c, by simulation and first step."""
    span = (samples["window"] - 1) * samples.get("stride", 1)
    return Counter((s, first) for s in simulations for first in range(steps + s % 3 - span))


def write(
    folder: JobFolder, solver: Path, samples: dict[str, int], *, trainers: int = 1, groups: int = 2, ranks: int = 1,
    steps: int = 12, count: int = 8, batch: int = 1, work: float = 0.0, how: str = "copy", torch: bool = False,
    cube: int = 9, **keys: object,
) -> None:  # fmt: skip
    """Write a job file."""
    program = python("trainers/checks/check_windows.py", batch, work, *(["torch"] if torch else []))
    folder.job(
        trainers={"ranks": trainers, "program": program},
        solvers={"groups": groups, "ranks_per_group": ranks, "program": [str(solver), str(steps), how, str(cube)]},
        parameters={"count": count, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
        fields={**FIELDS, "cube": {"dtype": "float32", "shape": [5, 4, cube]}},
        samples=samples,
        **keys,
    )


def run(folder: JobFolder, *given: object, **keys: object) -> tuple[Result, list[dict[str, list[list[int]]]]]:
    """Run a job to its end; returns what each trainer has seen."""
    write(folder, *given, **keys)  # type: ignore[arg-type]
    trainers = int(str(keys.get("trainers", 1)))
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    return result, folder.read_notes("seen", trainers)


def seen(came: list[dict[str, list[list[int]]]], what: str = "seen") -> Counter[tuple[int, int]]:
    return Counter((simulation, step) for trainer in came for simulation, step in trainer[what])


def lines(folder: JobFolder, attempt: int, trainer: int) -> list[tuple[int, int]]:
    """Return the windows that a trainer has drawn in this start of the run, in order."""
    path = folder.path / f"drawn-{attempt}-{trainer}"
    return [tuple(line[0]) for line in read_lines(path)] if path.exists() else []


def draw(seed: int) -> dict[str, object]:
    """Generate a random job."""
    rng = random.Random(seed)
    samples = {"window": rng.randint(2, 5), "stride": rng.randint(1, 3)}
    span = (samples["window"] - 1) * samples["stride"]
    samples["run"] = rng.choice([span, span + 1, 2 * span, 10 * span])
    trainers, policy = rng.randint(1, 3), rng.choice(["fifo", "firo"])
    buffer = {
        "policy": policy,
        "capacity": rng.choice([2, 5, 40]) * samples["window"],
        "watermark": 0,
        "tail": "repeat",
    }
    layout = {"groups": rng.randint(1, 3), "ranks": rng.choice([1, 2, 4]), "how": rng.choice(["copy", "iput"])}
    return {
        "samples": samples, "trainers": trainers, "buffer": buffer, "cube": rng.choice([9, 900]),
        "steps": rng.choice([2, 9, 30]), **layout,
    }  # fmt: skip


FURTHER = [("reservoir", 2, 2), ("fifo", 1, 3), ("firo", 2, 3), ("fifo", 2, 2), ("firo", 3, 1)]
SEEDS = [1, 2, *[pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 23)]]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_window_arrives_once_and_complete(folder: JobFolder, compiled: Callable[[str], Path], seed: int) -> None:
    drawn = draw(seed)
    print(drawn)
    result, came = run(folder, compiled("pattern"), **drawn)  # type: ignore[arg-type]
    expected = windows(range(8), drawn["steps"], drawn["samples"])  # type: ignore[arg-type]
    trainers, run_of = drawn["trainers"], drawn["samples"]["run"]  # type: ignore[index]
    shares = {(simulation + first // run_of) % trainers for simulation, first in expected}  # type: ignore[operator]
    # A trainer that has none cannot repeat any, and all get the same number of batches.
    assert set(seen(came)) == (set(expected) if len(shares) == trainers else set())
    assert result.summary["samples"]["received"] == sum(expected.values())
    assert len({trainer["batches"] for trainer in came}) == 1


def test_windows_arrive_once_in_torch_batches(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    samples = {"window": 3, "stride": 2, "run": 5}
    buffer = {"policy": "fifo", "capacity": 60}
    result, came = run(
        folder, compiled("pattern"), samples, batch=4, torch=True, buffer=buffer, validation={"count": VALIDATION}
    )
    expected = windows(range(8), 12, samples)
    assert set(seen(came)) <= set(expected) and max(seen(came).values()) == 1
    assert len(seen(came)) == sum(expected.values()) // 4 * 4
    assert seen(came, "validation") == windows(range(8, 8 + VALIDATION), 12, samples)
    assert result.summary["samples"]["validation"] == sum(windows(range(8, 12), 12, samples).values())


def test_reservoir_draws_windows_again(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    samples = {"window": 4, "stride": 1}
    buffer = {"policy": "reservoir", "capacity": 40, "watermark": 3}
    result, came = run(folder, compiled("pattern"), samples, trainers=2, batch=2, steps=30, work=0.002, buffer=buffer)
    expected = windows(range(8), 30, samples)
    assert set(seen(came)) <= set(expected)
    drawn = result.summary["samples"]["by_draws"]
    assert sum(drawn) == result.summary["samples"]["received"] == sum(expected.values())
    assert sum(i * n for i, n in enumerate(drawn)) == sum(seen(came).values())


@pytest.mark.parametrize(
    ("policy", "before", "after"),
    [("fifo", 2, 1), ("firo", 3, 3), *[pytest.param(p, b, a, marks=pytest.mark.full) for p, b, a in FURTHER]],
)
def test_resume_has_every_window_once(
    folder: JobFolder, compiled: Callable[[str], Path], policy: str, before: int, after: int
) -> None:
    samples = {"window": 3, "stride": 2, "run": 7}
    buffer = {"policy": policy, "capacity": 40, "tail": "repeat"}
    keys = {"buffer": buffer, "validation": {"count": 2}, "work": 0.03, "steps": 40, "groups": 3}
    write(folder, compiled("pattern"), samples, trainers=before, **keys)  # type: ignore[arg-type]
    started, process = time.monotonic(), folder.start()
    while not all(lines(folder, 1, trainer)[15:] for trainer in range(before)):
        assert process.poll() is None and time.monotonic() < started + 90
        time.sleep(0.05)
    process.terminate()
    first = folder.finish(process, timeout=60, started=started)
    assert first.summary["status"] == "stopped", first.logs()
    write(folder, compiled("pattern"), samples, trainers=after, **keys)  # type: ignore[arg-type]
    assert first.run is not None
    second = folder.resume(first.run, *sets(f"trainers.ranks={after}"), timeout=120)
    assert second.status == 0, second.logs()
    (resumed,) = set(re.findall("resumed at batch ([1-9][0-9]*)", second.logs()))
    counted = Counter(w for trainer in range(before) for w in lines(folder, 1, trainer)[: int(resumed)])
    assert policy == "reservoir" or max(counted.values()) == 1
    rest = Counter(w for trainer in range(after) for w in lines(folder, 2, trainer))
    assert set(counted + rest) == set(windows(range(8), 40, samples))
    if after == 1 and policy != "reservoir":  # nothing to repeat
        assert max((counted + rest).values()) == 1
    assert second.summary["samples"]["received"] == sum(windows(range(8), 40, samples).values())
    assert second.summary["samples"]["validation"] == sum(windows(range(8, 10), 40, samples).values())


def test_short_simulations_are_counted_and_reported_once(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    samples = {"window": 3, "stride": 2}  # of 3, 4 and 5 steps only the last are long enough
    result, came = run(folder, compiled("pattern"), samples, trainers=2, steps=3, buffer={"tail": "repeat"})
    assert set(seen(came)) == set(windows(range(8), 3, samples)) == {(2, 0), (5, 0)}
    assert result.summary["simulations"] == {"requested": 8, "complete": 8, "failed": 0, "short": 6}
    (said,) = [event for event in result.events() if event["event"] == "short_simulation"]
    assert said["needs"] == 5 and said["steps"] < 5


def test_a_record_has_each_step_once_and_windows_are_read_from_it(
    folder: JobFolder, compiled: Callable[[str], Path]
) -> None:
    samples = {"window": 3, "stride": 2, "run": 6}
    buffer = {"policy": "fifo", "capacity": 60}
    run(folder, compiled("pattern"), samples, trainers=2, buffer=buffer, record={"path": "samples"}, groups=3)
    dataset = RecordedDataset(folder.path / "samples", window=3, stride=2)
    assert Counter(zip(*first_steps(dataset), strict=True)) == windows(range(8), 12, samples)
    steps = RecordedDataset(folder.path / "samples")
    assert Counter(zip(*first_steps(steps), strict=True)) == windows(range(8), 12, {"window": 1})
    rows = sum(len(h5py.File(path)["simulation"][()]) for path in (folder.path / "samples").glob("*.h5"))
    assert rows == len(steps)
    sample = dataset[7]
    simulation, line = int(sample["simulation"]), np.arange(37)
    expected = np.stack([4096 * simulation + 64 * step + line for step in sample["step"].tolist()])
    assert sample["line"].shape == (3, 37) and np.array_equal(sample["line"].numpy(), expected)
    assert sample["time"].tolist() == [0.25 * step for step in sample["step"].tolist()]


def first_steps(dataset: RecordedDataset) -> tuple[list[int], list[int]]:
    read = [dataset[i]["step"].reshape(-1)[0].item() for i in range(len(dataset))]
    return dataset.simulations.tolist(), [int(step) for step in read]
