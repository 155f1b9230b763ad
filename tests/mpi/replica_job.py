"""Random jobs whose trainers are replicas of several ranks, and the checks of their results."""

import json
import random
from collections import Counter
from typing import Any

from jobs import JobFolder, Result, python, read_lines, read_rows

STEPS = 14
_LARGE = """
import numpy as np


def simulate(alpha):
    for step in range({steps}):
        yield {{"u": np.random.default_rng([int(1e6 * alpha), step]).random({shape})}}
"""


def draw(seed: int, policy: str) -> dict[str, Any]:
    """Generate the arguments of `write_job`."""
    dice = random.Random(f"{seed} {policy}")
    window = dice.choice([1, 1, 2])
    job: dict[str, Any] = {
        "policy": policy,
        "replicas": dice.choice([1, 2, 2]),
        "each": dice.choice([2, 2, 3]),
        "batch_size": dice.randint(1, 5),
        "window": window,
        "capacity": dice.choice([20, 60]) * window,
        "weights": dice.random() < 0.3,
        "options": {
            "statistics": True,
            "validate": True,
            "losses": dice.choice([[0], [1], [0, 1]]),
            **dice.choice([{}, {"per_epoch": 3}, {"single": True}]),
        },
    }
    return job


def write_job(
    folder: JobFolder,
    policy: str = "fifo",
    replicas: int = 2,
    each: int = 2,
    batch_size: int = 3,
    window: int = 1,
    capacity: int = 40,
    count: int = 10,
    weights: bool = False,
    shape: tuple[int, ...] = (4, 6),
    options: dict[str, Any] | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """Write a job of trainers/replicas/stream.py; returns what `check` needs to know."""
    options = {"batch_size": batch_size, **(options or {})}
    folder.variables |= {"STEPS": str(STEPS)}
    folder.write(large=_LARGE.format(steps=STEPS, shape=shape))
    program = python("trainers/replicas/stream.py", json.dumps(options))
    folder.job(
        trainers={"ranks": replicas * each, "ranks_per_replica": each, "program": program},
        solvers={"groups": 2, "function": "functions.steps:simulate" if shape == (4, 6) else "large:simulate"},
        fields={"u": {"dtype": "float32", "shape": list(shape)}},
        parameters={
            "count": count,
            "space": {"alpha": [0.0, 1.0]},
            **({"sampler": "adaptive", "weights": True} if weights else {}),
        },
        buffer={"policy": policy, "capacity": capacity},
        samples={"window": window, "statistics": bool(options.get("statistics"))},
        **({"validation": {"count": 3}} if options.get("validate") else {}),
        **keys,
    )
    samples = {(simulation, step) for simulation in range(count) for step in range(STEPS - window + 1)}
    known = {"policy": policy, "replicas": replicas, "each": each, "batch_size": batch_size, "samples": samples}
    return known | {"losses": options.get("losses", [])}


def books(result: Result, job: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return what each replica has noted; its ranks noted the same, except lines that a kill kept from one of them."""
    assert result.run is not None, result.output
    ranks = job["replicas"] * job["each"]
    written = [read_lines(result.run / f"book-{rank}.jsonl") for rank in range(ranks)]
    for rank, lines in enumerate(written):
        first = written[rank - rank % job["each"]]
        batches = {(start, line["batch"]): line for start, line in _of_starts(first) if "batch" in line}
        for start, line in _of_starts(lines):
            if "batch" in line and (start, line["batch"]) in batches:
                assert line == batches[start, line["batch"]], (rank, line, batches[start, line["batch"]])
        if job.get("kill") is None:
            assert lines == first, rank
    return written[:: job["each"]]


def _of_starts(lines: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Return each line with the number of its start."""
    start, found = 0, []
    for line in lines:
        start += "resumed" in line
        found.append((start, line))
    return found


def _kept(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the batches that count, without those after the checkpoint from which the next start resumed."""
    resumed, last = max(line["resumed"] for line in lines if "resumed" in line), _of_starts(lines)[-1][0]
    return [line for start, line in _of_starts(lines) if "batch" in line and (start == last or line["batch"] < resumed)]


def used(lines: list[dict[str, Any]]) -> list[list[int]]:
    """Return the samples of a replica's batches that count, which are numbered without gaps."""
    numbers = [line["batch"] for line in _kept(lines)]
    first = min(line["resumed"] for line in lines if "resumed" in line)
    assert numbers == list(range(first, first + len(numbers))), numbers
    return [sample for line in _kept(lines) for sample in line["samples"]]


def check(job: dict[str, Any], result: Result) -> None:
    """Each sample was drawn once over the replicas (in a reservoir at least once), but the last that fill no batch."""
    told = result.logs()
    assert result.status == 0 and result.summary["status"] == "complete", told
    drawn: Counter[tuple[int, int]] = Counter()
    written = books(result, job)
    for lines in written:
        drawn.update(tuple(sample) for sample in used(lines))
        assert lines[-1] == {"over": True, "stopped": False, "drawn": len(_kept(lines))}, told
    assert set(drawn) <= job["samples"], told
    left = sum(1 for sample in job["samples"] if sample not in drawn)
    if job["policy"] == "reservoir":
        assert not result.summary.get("failed_simulations"), told
        return
    assert max(drawn.values()) == 1, told
    assert left < job["batch_size"] * job["replicas"] + len(job["samples"]) // 4, (left, told)
    if job["losses"] and job.get("kill") is None:
        rows = read_rows(result.run / "losses.csv") if result.run is not None else {}
        counted = Counter(simulation for simulation, _ in drawn.elements())
        assert {simulation: int(row["count"]) for simulation, row in rows.items() if int(row["count"])} == counted, told
