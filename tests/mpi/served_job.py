"""Jobs with parameter servers whose trainers die, and the checks of their results."""

import itertools
import json
import random
from collections import Counter, defaultdict
from typing import Any

from exact_job import JOIN_POINTS, books
from jobs import JobFolder, Result, python
from stream_job import SIMULATIONS, STEPS, source

ROWS = [100, 60, 40]
LR = 1e-3

POINTS = ["push", "pull", "settle", "agree", "regroup", "regrouped", "meet", "checkpoint"]
ONCE = {"settle", "agree", "regroup", "regrouped", "meet", "checkpoint"}

_Push = tuple[int, list[int]]
"""Epoch and rows."""


def write_job(
    folder: JobFolder,
    servers: int = 2,
    trainers: int = 2,
    every_s: float = 3600,
    elastic: Any = False,
    timeout_s: float = 600,
    buffer: dict[str, Any] | None = None,
    spares: int = 0,
    **options: Any,
) -> dict[str, Any]:
    """Write a job of trainers/elastic/served.py; returns what `check` needs to know."""
    given = {"data": "files", "batch_size": 4, "epochs": 2, "staleness": 0, "optimizer": "SGD"} | options
    given = {"settings": {"lr": LR}, "kills": {}} | given
    program = python("trainers/elastic/served.py", json.dumps(given))
    job: dict[str, Any] = {"trainers": {"ranks": trainers, "program": program, "elastic": elastic}}
    job["trainers"] |= {"timeout_s": timeout_s, "spares": spares}
    job["servers"] = {"ranks": servers}
    job["checkpoint"] = {"every_s": every_s}
    job |= source(folder, given["data"], ROWS)
    if buffer:
        job["buffer"] |= buffer
    folder.write_job(job)
    return {**given, "trainers": trainers, "spares": spares, "policy": job.get("buffer", {}).get("policy")}


def draw(seed: int) -> dict[str, Any]:
    """Generate the arguments of `write_job`: a job whose trainers die, with a stream more often than with files."""
    dice = random.Random(f"served {seed}")
    trainers, data = dice.randint(2, 4), dice.choice(["stream", "stream", "files"])
    kills = {}
    for trainer in dice.sample(range(trainers), dice.randint(1, min(2, trainers - 1))):
        point = dice.choice(POINTS)
        by_name = f"{point}:{1 if point in ONCE else dice.randint(1, 40)}"
        kills[str(trainer)] = by_name if dice.random() < 0.6 else f"{dice.randint(0, 30)} SIGKILL"
    buffer = {"policy": dice.choice(["fifo", "firo", "reservoir"]), "capacity": dice.choice([30, 80, 1000])}
    return {
        "data": data,
        "elastic": True,
        "trainers": trainers,
        "servers": dice.randint(1, 3),
        "batch_size": dice.randint(1, 6),
        "staleness": dice.choice([0, 1, 3, 8]),
        "every_s": dice.choice([0.3, 3600]),
        "pauses_s": {str(trainer): dice.choice([0, 0.003, 0.02]) for trainer in range(trainers)},
        "kills": kills,
        "buffer": buffer if data == "stream" else None,
    }


def draw_with_spares(seed: int) -> dict[str, Any]:
    """Generate such a job with spares, some of which may also die."""
    dice = random.Random(f"served spares {seed}")
    job = draw(seed)
    job["spares"] = dice.randint(1, 2)
    if dice.random() < 0.5:
        point = dice.choice(JOIN_POINTS)
        victim = job["trainers"] if point.endswith("receive") else dice.randrange(job["trainers"] + 1)
        if str(victim) not in job["kills"] and job["trainers"] > len(job["kills"]) + 1:
            job["kills"][str(victim)] = f"{point}:1"
    return job


def complete(result: Result, trainers: int = 2) -> list[list[dict[str, Any]]]:
    """Check that the job is complete, and return what the trainers have written."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    return books(result, trainers)


def check(job: dict[str, Any], result: Result) -> None:
    """Each row is in one push that counts an epoch, each sample of a stream in one, of a reservoir in at least one."""
    told = f"{job}\n{result.logs()}"
    everyone = job["trainers"] + job["spares"]
    written = complete(result, everyone)
    lost = result.dead_trainers()
    ended = [trainer for trainer, lines in enumerate(written) if lines and "end" in lines[-1]]
    waited = [trainer for trainer in range(job["trainers"], everyone) if not written[trainer] and trainer not in lost]
    retired = [event["trainer"] for event in result.events() if event["event"] == "trainer_retired"]
    assert sorted(ended + lost + waited + retired) == list(range(job.get("again", everyone))), told
    weights = {written[trainer][-1]["weight"][0] for trainer in ended}
    assert len(weights) == 1, (weights, told)
    resumed = next((lines[i]["resumed"] for lines in written for i in _starts(lines)[1:]), None)
    joined = range(job["trainers"], everyone)
    outcomes = [_outcomes(lines, resumed, trainer in lost, trainer in joined) for trainer, lines in enumerate(written)]
    told = f"{outcomes} {told}"
    pushes = [list(itertools.chain(*some)) for some in itertools.product(*outcomes)]
    if job["staleness"] and job["optimizer"] == "SGD":  # each push is a step by the mean of its rows
        moved = -next(iter(weights)) / LR
        sums = [sum(sum(rows) / len(rows) for _, rows in some) for some in pushes]
        pushes = [some for some, total in zip(pushes, sums, strict=True) if abs(total - moved) < 1e-6 * max(1.0, moved)]
        assert pushes, (moved, sums, told)
    wrong = _wrong_in_stream if job["data"] == "stream" else _wrong
    found = [wrong(job, _count(some)) for some in pushes]
    assert not all(found), (found, told)


def _starts(lines: list[dict[str, Any]]) -> list[int]:
    return [i for i, line in enumerate(lines) if "resumed" in line]


def _outcomes(lines: list[dict[str, Any]], resumed: int | None, dies: bool, joined: bool) -> list[list[_Push]]:
    """Return which pushes of a trainer may count: those after a pull; the last one of a dying trainer may or may not.

    For a trainer that had joined, the checkpoint from which the job resumed may have any number of them.
    """
    second = (_starts(lines)[1:] or [len(lines)])[0]
    before, after = (
        [(line["epoch"], line["rows"]) for line in of if "pull" in line] for of in (lines[:second], lines[second:])
    )
    if resumed is None:
        return _either(before) if dies else [before]
    first = [before[:resumed]] if len(before) > resumed else _either(before)
    first = [before[:n] for n in range(len(before) + 1)] if joined else first
    return [some + more for some in first for more in (_either(after) if dies else [after])]


def _either(pushes: list[_Push]) -> list[list[_Push]]:
    return [pushes[:-1], pushes] if pushes else [[]]


def _count(pushes: list[_Push]) -> dict[int, Counter[int]]:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for epoch, rows in pushes:
        counts[epoch].update(rows)
    return counts


def _wrong(job: dict[str, Any], counts: dict[int, Counter[int]]) -> list[Any]:
    """Return epochs in which a row was not there once; if fewer rows are left than trainers, some may repeat."""
    rows = set(range(1, sum(ROWS) + 1))
    if sorted(counts) != list(range(job["epochs"])):
        return [sorted(counts)]
    return [
        of
        for of in counts.values()
        if set(of) != rows or sum(of.values()) - len(rows) >= job["trainers"] + job["spares"]
    ]


def _wrong_in_stream(job: dict[str, Any], counts: dict[int, Counter[int]]) -> list[Any]:
    """Return samples that were not there once, except those that fill no batch on all, and repeats of a reservoir."""
    everything = {1 + step + 1000 * of for of in range(SIMULATIONS) for step in range(STEPS)}
    again = sorted(row for row, n in counts[0].items() if n > 1 and job["policy"] != "reservoir")
    lacking = sorted(everything - set(counts[0]))
    most = (job["trainers"] + job["spares"]) * (job["batch_size"] + SIMULATIONS // 4)  # because shares differ
    return [*again, *sorted(set(counts[0]) - everything), *(lacking if len(lacking) >= most else [])]
