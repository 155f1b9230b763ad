"""Jobs with LocalSGD whose trainers die, and the checks of their results."""

import itertools
import json
from collections import Counter, defaultdict
from typing import Any

from exact_job import books
from jobs import JobFolder, Result, python
from stream_job import SIMULATIONS, STEPS, source

ROWS = [40, 33, 27]


def run(
    folder: JobFolder,
    kills: dict[str, str],
    data: str = "files",
    trainers: int = 3,
    spares: int = 0,
    elastic: bool = True,
    timeout: float = 120,
    every_s: float = 3600,
    **options: Any,
) -> tuple[dict[str, Any], Result]:
    """Run a job of trainers/elastic/local.py; returns what `check` needs to know, and the result."""
    given = {"data": data, "rows": sum(ROWS), "batch_size": 4, "epochs": 2, "every": 3, "momentum": 0.0, "kills": kills}
    given |= options
    program = python("trainers/elastic/local.py", json.dumps(given))
    job: dict[str, Any] = {"trainers": {"ranks": trainers, "spares": spares, "program": program, "elastic": elastic}}
    job["checkpoint"] = {"every_s": every_s}
    job |= source(folder, data, ROWS)
    folder.write_job(job)
    result = folder.run(timeout=timeout)
    folder.assert_nothing_left()
    return {**given, "trainers": trainers, "spares": spares}, result


def check(job: dict[str, Any], result: Result) -> None:
    """All that live have the same weights after each average, in which each sample counts once."""
    told = f"{job}\n{result.logs()}"
    assert result.status == 0 and result.summary["status"] == "complete", told
    counts = trained(books(result, job["trainers"] + job["spares"]), told, job["momentum"])
    lost = result.summary.get("lost_trainers", [])
    if job["data"] == "stream":
        everything = {1 + step + 1000 * of for of in range(SIMULATIONS) for step in range(STEPS)}
        most = job["trainers"] * (job["batch_size"] + SIMULATIONS // 4)  # because shares differ
        once = counts[0]
        assert set(once) <= everything and max(once.values()) == 1, (once, told)
        assert len(everything) - len(once) < most, (sorted(everything - set(once)), told)
        return
    assert sorted(counts) == list(range(max(counts) + 1)) and len(counts) >= job["epochs"], told
    for epoch, of in counts.items():
        again, rows = sum(of.values()) - job["rows"], set(range(1, job["rows"] + 1))
        assert set(of) == rows, (epoch, rows - set(of), told)
        assert again < job["trainers"] and (not again or lost), (epoch, again, told)


def trained(written: list[list[dict[str, Any]]], told: str, momentum: float = 0.0) -> dict[int, Counter[int]]:
    """Count by epoch how often each sample is in an average, and check that averages are the same on all that live."""
    made: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)  # by average and trainer
    drawn: dict[int, dict[int, list[tuple[int, list[int]]]]] = defaultdict(dict)  # epoch and rows of each step before
    for trainer, lines in enumerate(written):
        steps: list[tuple[int, list[int]]] = []
        number = 0
        for line in _that_count(lines):
            if "rows" in line:
                steps.append((line["epoch"], line["rows"]))
            elif "average" in line:
                number = line["average"] + 1
                made[line["average"]][trainer] = line["weight"], line["weights"]
                drawn[line["average"]][trainer], steps = steps, []
        drawn[number].setdefault(trainer, steps)
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    before = velocity = 0.0
    assert sorted(made) == list(range(len(made))), told
    for average in sorted(made):
        outcomes = set(made[average].values())
        assert len(outcomes) == 1, (average, outcomes, told)
        ((weight, _),) = outcomes
        took_part = _who_took_part(drawn[average], set(made[average]), before - weight, momentum * velocity)
        assert took_part is not None, (average, before - weight, velocity, drawn[average], told)
        for trainer in took_part:
            for epoch, rows in drawn[average].get(trainer, ()):
                counts[epoch].update(map(int, rows))
        if any(drawn[average].get(trainer) for trainer in took_part):
            velocity = before - weight
        before = weight
    return counts


def _that_count(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines without those that a resumed start has repeated."""
    starts = [i for i, line in enumerate(lines) if "resumed" in line]
    if len(starts) < 2:
        return lines
    ends = [i for i, line in enumerate(lines) if line.get("average") == lines[starts[1]]["averages"] - 1]
    return lines[: ends[0] + 1] + lines[starts[1] :]


def _who_took_part(
    drawn: dict[int, list[tuple[int, list[int]]]], made: set[int], difference: float, goes_on: float
) -> set[int] | None:
    """Return whose steps an average contains: those that made it, and any of those that died before."""
    dead = [trainer for trainer in drawn if trainer not in made and drawn[trainer]]
    for n in range(len(dead) + 1):
        for some in itertools.combinations(dead, n):
            all_rows = [[rows for _, rows in drawn[trainer]] for trainer in {*made, *some} if trainer in drawn]
            weights = [sum(map(len, steps)) for steps in all_rows]
            moves = [sum(sum(rows) / len(rows) for rows in steps) for steps in all_rows]
            total = sum(weights)
            expected = goes_on + sum(w * move for w, move in zip(weights, moves, strict=True)) / total if total else 0.0
            if abs(expected - difference) < 1e-6 * max(1.0, abs(expected)):
                return {*made, *some}
    return None
