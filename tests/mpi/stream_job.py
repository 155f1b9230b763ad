"""Random jobs with solvers whose trainers die, and the checks of their results."""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from exact_job import JOIN_POINTS, books, mixed, who_took_part, write_parts
from jobs import JobFolder, Result, python

from mpidata import RecordedDataset

STEPS, SIMULATIONS = 24, 20
PATTERN_FIELDS = {
    "line": {"dtype": "float64", "shape": [37]},
    "plane": {"dtype": "float32", "shape": [13, 70]},
    "cube": {"dtype": "float32", "shape": [5, 4, 60]},
    "whole": {"dtype": "int64", "shape": [3]},
    "scalar": {"dtype": "float64", "shape": []},
}
BESIDE = ["validate", "validated", "validation.wait", "validation.send"]
POINTS = ["backward", "reduced", "agree", "agreed", "regroup", "regrouped", "meet"]


def source(folder: JobFolder, data: str, rows: list[int] | None = None) -> dict[str, Any]:
    """Return the keys of a job file for its data: a `stream`, or part files of `rows` rows, which this writes."""
    if data != "stream":
        write_parts(folder, rows or [])
        return {"loaders": {"ranks": 1}}
    folder.variables["STEPS"] = str(STEPS)
    return {
        "solvers": {"groups": 2, "function": "functions.steps:simulate"},
        "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [4, 6]}},
        "buffer": {"policy": "fifo", "capacity": 40},
    }


def write_job(
    folder: JobFolder,
    kills: dict[str, str],
    trainers: int = 3,
    batch_size: int = 4,
    global_batch_size: int | None = None,
    pause_s: float = 0.0,
    at_least: int | None = 1,
    every: int = 1,
    timeout_s: float = 600,
    kills_again: dict[str, str] | None = None,
    script: str = "stream",
    spares: int = 0,
    joins: int = 0,
    retires: int = 0,
    waits_s: float = 2.0,
    exceptions: str = "end",
    validate: int = 0,
    after: int = 0,
    **keys: Any,
) -> dict[str, Any]:
    """Write a job of trainers/elastic/stream.py, or another script beside it; returns what `check` needs to know.

    Without `at_least`, a death ends the job. `validate`: it validates before the first step, and after every n-th.
    `after`: its scales stay the same from this batch on.
    """
    options = {
        "batch_size": None if global_batch_size else batch_size,
        "global_batch_size": global_batch_size,
        "every": every,
        "pause_s": pause_s,
        "validate": validate,
        "after": after,
        "kills": kills,
        "kills_again": kills_again or {},
        "joins": joins,
        "retires": retires,
        "waits_s": waits_s,
    }
    program = python(f"trainers/elastic/{script}.py", json.dumps(options))
    job: dict[str, Any] = {
        "trainers": {"ranks": trainers, "program": program},
        **source(folder, "stream"),
    }
    if at_least is not None:
        job["trainers"] |= {
            "elastic": {"at_least": at_least, "exceptions": exceptions},
            "timeout_s": timeout_s,
            "spares": spares,
        }
    for key, value in keys.items():
        inner = isinstance(value, dict) and key == "buffer"
        job[key] = {**job[key], **value} if inner else value
    folder.write_job(job)
    policy, tail, samples = job["buffer"]["policy"], job["buffer"].get("tail", "drop"), job.get("samples", {})
    return {
        "trainers": trainers,
        "spares": spares,
        "batch_size": (global_batch_size or batch_size) * every,
        "weighed": global_batch_size is not None,
        "policy": policy,
        "tail": tail,
        "every": every,
        "kills": kills,
        "more": 0,
        "validation": job.get("validation", {}).get("count", 0),
        "after": after,
        "repeats": job["buffer"].get("repeats", 0),
        "span": (samples.get("window", 1) - 1) * samples.get("stride", 1),
        "run": samples.get("run", 1),
        "every_recorded": job["record"].get("every", 1) if "record" in job else 0,
    }


def by_c_solver(compiled: Callable[[str], Path], groups: int = 2, ranks: int = 2) -> dict[str, Any]:
    """Return the keys of a job with groups of several ranks, whose simulations have up to two more steps."""
    return {
        "solvers": {
            "groups": groups,
            "ranks_per_group": ranks,
            "program": [str(compiled("pattern")), str(STEPS), "copy", "60"],
        },
        "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
        "fields": PATTERN_FIELDS,
    }


def draw(seed: int) -> dict[str, Any]:
    """Generate the arguments of `write_job`."""
    dice = random.Random(seed)
    trainers = dice.randint(2, 4)
    dying = dice.sample(range(trainers), dice.randint(1, min(2, trainers - 1)))
    kills = {}
    for trainer in dying:
        point = dice.choice(POINTS)
        by_name = f"{point}:{1 if point[0] in 'rm' and point != 'reduced' else dice.randint(1, 25)}"
        kills[str(trainer)] = (
            by_name if dice.random() < 0.6 else f"{dice.randint(0, 40)} {dice.choice(['SIGKILL', 'exit'])}"
        )
    buffer = {"policy": dice.choice(["fifo", "fifo", "firo", "reservoir"]), "capacity": dice.choice([30, 80, 1000])}
    return {
        "kills": kills,
        "trainers": trainers,
        "batch_size": dice.randint(1, 6),
        "every": dice.choice([1, 1, 3]),
        "pause_s": dice.choice([0, 0, 0.02]),
        "buffer": {**buffer, "tail": dice.choice(["drop", "repeat"])},
    }


def draw_beside(seed: int) -> dict[str, Any]:
    """Generate such a job with validation, and maybe scales, a budget of draws, a record and windows."""
    return with_more(draw(seed), random.Random(f"beside {seed}"))


def draw_beside_spares(seed: int) -> dict[str, Any]:
    """Generate such a job with spares."""
    return with_more(draw_with_spares(seed), random.Random(f"beside spares {seed}"))


def with_more(job: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Add validation to a job, and maybe scales, a budget of draws, a record and windows."""
    job["every"] = 1
    job["validation"], job["validate"] = {"count": dice.randint(1, 4)}, dice.randint(2, 6)
    if dice.random() < 0.5:
        job["samples"], job["after"] = {"statistics": {"u": 0}}, dice.choice([3, 8])
    if job["buffer"]["policy"] == "reservoir" and dice.random() < 0.5:
        job["buffer"]["repeats"] = dice.choice([1.5, 3.0])
    if dice.random() < 0.5:
        job["record"] = {"every": dice.choice([1, 1, 3])}
    if dice.random() < 0.5:
        window, stride = dice.randint(2, 3), dice.randint(1, 2)
        job["samples"] = job.get("samples", {}) | {
            "window": window,
            "stride": stride,
            "run": 2 * (window - 1) * stride,
        }
        if "global_batch_size" in job:
            job["buffer"]["capacity"] = max(job["buffer"]["capacity"], 2 * window * job["global_batch_size"])
    for trainer in list(job["kills"]):
        if dice.random() < 0.5:
            job["kills"][trainer] = f"{dice.choice(BESIDE)}:{dice.randint(1, 6)}"
    return job


def draw_together(seed: int) -> dict[str, Any]:
    """Generate such a job whose trainers share their batches."""
    dice = random.Random(f"together {seed}")
    job = draw(seed)
    total = job.pop("batch_size") * job["trainers"] + dice.randrange(job["trainers"])
    job["buffer"]["capacity"] = max(job["buffer"]["capacity"], total)
    return {**job, "every": 1, "global_batch_size": total}


def draw_with_spares(seed: int) -> dict[str, Any]:
    """Generate such a job with spares, some of which may also die."""
    dice = random.Random(f"spares {seed}")
    job = (draw_together if dice.random() < 0.3 else draw)(seed)
    job |= {"spares": dice.randint(1, 2), "pause_s": dice.choice([0, 0.02, 0.05])}
    if "global_batch_size" in job:
        job["global_batch_size"] += job["spares"]
        job["buffer"]["capacity"] = max(job["buffer"]["capacity"], job["global_batch_size"])
    if dice.random() < 0.5:
        point = dice.choice(JOIN_POINTS)
        victim = job["trainers"] if point.endswith("receive") else dice.randrange(job["trainers"] + 1)
        if str(victim) not in job["kills"] and job["trainers"] > len(job["kills"]) + 1:
            job["kills"][str(victim)] = f"{point}:1"
    return job


def sizes(job: dict[str, Any], result: Result) -> dict[int, list[int]]:
    """Count the samples that each trainer has drawn for each step."""
    drawn: dict[int, list[int]] = defaultdict(list)
    for lines in books(result, job["trainers"] + job["spares"]):
        for line in lines:
            if "rows" in line:
                drawn[line["step"]].append(len(line["rows"]))
    return drawn


def joined_at(lines: list[dict[str, Any]]) -> int:
    """Return the batch before which a trainer joined, in its last start; 0: it was there from the start."""
    return next((line["joined_at"] for line in reversed(lines) if "joined_at" in line), 0)


def trained(job: dict[str, Any], result: Result) -> Counter[int]:
    """Count how often each sample was trained on, and check that the steps were the same on all that live."""
    told = f"{job}\n{result.logs()}"
    assert result.status == 0 and result.summary["status"] == "complete", told
    drawn: dict[int, dict[int, list[int]]] = defaultdict(dict)  # by step and trainer
    made: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
    written = books(result, job["trainers"] + job["spares"])
    resumed = max((line["resumed"] for lines in written for line in lines if "resumed" in line), default=0)
    again = [-1] * len(written)  # whether the last start of each has resumed; -1: it has none
    for trainer, lines in enumerate(written):
        for line in lines:
            again[trainer] = int(line.get("again", again[trainer]))
            step = line.get("step", line.get("made"))
            if step is None or (resumed and not again[trainer] and step >= resumed):  # made again after the resume
                continue
            if "rows" in line:
                drawn[step][trainer] = line["rows"]
            else:
                made[step][trainer] = line["gradient"], line["weights"]
    lost = result.dead_trainers()
    # A trainer that has died while making its model has written nothing.
    last = [trainer for trainer, of in enumerate(again) if of == max(again) or (of < 0 and trainer in lost)]
    ended = [trainer for trainer in last if written[trainer] and "end" in written[trainer][-1]]
    retired = [event["trainer"] for event in result.events() if event["event"] == "trainer_retired"]
    assert sorted(ended + lost + [trainer for trainer in retired if trainer in last]) == last, told
    assert sorted(made) == list(range(len(made))), (sorted(made), told)
    from_step = {trainer: max(resumed, joined_at(written[trainer]) // job["every"]) for trainer in ended}
    assert all(trainer in of for step, of in made.items() for trainer in ended if step >= from_step[trainer]), told
    counts: Counter[int] = Counter()
    for step, outcomes in made.items():
        assert len(set(outcomes.values())) == 1, (step, outcomes, told)
        gradient = next(iter(outcomes.values()))[0]
        took_part = who_took_part(drawn[step], set(outcomes), gradient, weighed=job["weighed"])
        assert took_part, (step, gradient, drawn[step], told)
        for trainer in took_part:
            counts.update(map(int, drawn[step][trainer]))
    return counts


def check(job: dict[str, Any], result: Result) -> None:
    """Each sample was trained on once, except what the tail leaves out or repeats; in a reservoir at least once."""
    counts = trained(job, result)
    told = f"{job}\n{result.logs()}"
    steps = {simulation: STEPS + job["more"] * (simulation % 3) - job["span"] for simulation in range(SIMULATIONS)}
    everything = {1 + step + 1000 * simulation for simulation, n in steps.items() for step in range(n)}
    assert set(counts) <= everything, told
    lacking = sorted(everything - set(counts))
    again = {sample: n for sample, n in counts.items() if n > 1}
    check_left(job, result, len(lacking))
    most = most_left(job, result)
    if job["repeats"]:  # draws are random: some samples of a buffer that held all from the start are never drawn
        assert len(lacking) < most + len(everything) * math.exp(-job["repeats"]), (lacking, told)
    elif job["tail"] == "drop" or job["every"] > 1:  # then the last batches may be too few for a step
        assert len(lacking) < most, (len(lacking), lacking, told)
    else:
        assert not lacking, (lacking, told)
    if job["policy"] != "reservoir" and job["tail"] == "drop":
        assert not again, (again, told)
    elif job["policy"] != "reservoir":
        assert sum(again.values()) < 2 * most, (again, told)
    check_validation(job, result)
    if job["repeats"]:
        check_draws(job, result, sum(counts.values()), len(everything))
    if job["after"]:
        check_scales(job, result, len(everything))
    if job["every_recorded"]:
        check_record(job, result)


def check_left(job: dict[str, Any], result: Result, lacking: int) -> None:
    """Samples that nobody was trained on were received, and are left undrawn on living trainers: nothing was lost."""
    left, told = result.summary["samples"]["by_draws"][0], f"{job}\n{result.logs()}"
    resumed = any(event["event"] == "resume" for event in result.events())  # restored samples are not counted
    drawn = (job["trainers"] + job["spares"]) * job["batch_size"] if job["every"] > 1 else 0  # too few for a step
    # A trainer that retires may leave before it drops them.
    assert left <= lacking or "retired_trainers" in result.summary, (lacking, left, told)
    assert lacking <= left + drawn + held_at_end(job, result) or resumed, (lacking, left, told)


def held_at_end(job: dict[str, Any], result: Result) -> int:
    """Return how many undrawn samples trainers may have held that died as all met: their last report may be old."""
    written, received = books(result, job["trainers"] + job["spares"]), result.summary["samples"]["per_trainer"]
    met = [int(trainer) for trainer, kill in job["kills"].items() if str(kill).startswith("meet")]
    drawn = [len({row for line in written[one] for row in line.get("rows", [])}) for one in met]
    return sum(max(received[one] - n, job["batch_size"] - 1) for one, n in zip(met, drawn, strict=True))


def most_left(job: dict[str, Any], result: Result) -> int:
    """Return how many samples `buffer.tail: drop` may leave out, because the shares differ slightly.

    A change deals each simulation in runs, to each trainer a run more or less than to others. Over all simulations, the
    shares differ by less than half of that, in all sequences of up to three changes of four trainers and two spares. A
    resume uses the numbers of trainers at the start: a trainer that had died by then was trained less than the others.
    """
    resumed = max((line.get("resumed", 0) for lines in books(result, job["trainers"]) for line in lines), default=0)
    less = 0
    for lines in books(result, job["trainers"]):
        before = [line["step"] for line in lines if "rows" in line and line["step"] < resumed // job["every"]]
        less += resumed // job["every"] - len(set(before))
    return (job["trainers"] + job["spares"]) * (job["batch_size"] + job["run"] * SIMULATIONS // 2) + less * job[
        "batch_size"
    ]


def check_draws(job: dict[str, Any], result: Result, draws: int, samples: int) -> None:
    """The number of draws follows from `buffer.repeats`, up to whole batches and those in which trainers died."""
    wanted, trainers = job["repeats"] * samples, job["trainers"] + job["spares"]
    batch = job["batch_size"] * (1 if job["weighed"] else trainers)
    excess = result.summary["batches"].get("excess", 0) * batch
    deaths = len(result.summary.get("lost_trainers", []))
    less = batch * (1 + deaths * job["weighed"])
    assert wanted - less <= draws <= wanted + excess + deaths * batch, (
        wanted,
        draws,
        excess,
        f"{job}\n{result.logs()}",
    )


def check_record(job: dict[str, Any], result: Result) -> None:
    """The record has each step once, except what a dead trainer had trained on and not written yet."""
    told = f"{job}\n{result.logs()}"
    assert result.run is not None
    lost = result.summary.get("lost_trainers", [])
    written = books(result, job["trainers"] + job["spares"])
    unsure = {int(row) for trainer in lost for line in written[trainer] for row in line.get("rows", ())}
    for validation in (False, True):
        count, first = (job["validation"], SIMULATIONS) if validation else (SIMULATIONS, 0)
        if not count:
            continue
        recorded = [dataset[i] for dataset in [RecordedDataset(result.run / "record", validation=validation)]
                    for i in range(len(dataset))]  # fmt: skip
        assert all(abs(float(of["u"].mean() - of["parameters"][0]) - int(of["step"])) < 1e-4 for of in recorded), told
        rows = [1 + int(of["step"]) + 1000 * int(of["simulation"]) for of in recorded]
        steps = range(0, STEPS, job["every_recorded"])
        wanted = {1 + step + 1000 * (first + i) for i in range(count) for step in steps}
        assert len(set(rows)) == len(rows) and set(rows) <= wanted, told
        near = {row + step for row in unsure for step in range(job["span"] + 1)}
        assert wanted - set(rows) <= near, (sorted(wanted - set(rows)), told)


def check_scales(job: dict[str, Any], result: Result, samples: int) -> None:
    """From some batch on, the scales are and stay the same on all; at the end, each sample has been counted."""
    told = f"{job}\n{result.logs()}"
    written = books(result, job["trainers"] + job["spares"])
    scales = [[line for line in lines if "frozen" in line] for lines in written]
    frozen = {json.dumps(line["scales"]) for lines in scales for line in lines if line["frozen"]}
    assert len(frozen) == 1, (frozen, told)
    assert all(lines[number]["frozen"] for lines in scales for number in range(job["after"], len(lines))), told
    ends = [line for lines in written for line in lines if "counted" in line]
    assert ends and all(line == ends[0] for line in ends), (ends, told)
    if job["policy"] == "fifo":  # others may have drawn some that the dead trainer's last report lacked
        assert ends[0]["counted"] >= 24 * (samples + SIMULATIONS * job["span"]), (ends, samples, told)


def check_validation(job: dict[str, Any], result: Result) -> None:
    """Each pass over the validation samples saw each once, over all trainers that lived then."""
    samples = STEPS - job["span"]
    rows = [1 + step + 1000 * (SIMULATIONS + i) for i in range(job["validation"]) for step in range(samples)]
    numbers = np.array(rows, np.int64)
    whole = [len(rows), mixed(numbers).sum(), (numbers**2).sum()]
    written = [line for lines in books(result, job["trainers"] + job["spares"]) for line in lines]
    passes = [line for line in written if "validated" in line]
    copies = [line["copied"] for line in written if "copied" in line]
    told = f"{job}\n{result.logs()}"
    assert all(line["validated"] == whole for line in passes), (whole, passes, told)
    assert all(copied == whole for copied in copies), (whole, copies, told)
    if job["validation"]:
        assert passes and copies and result.summary["samples"]["validation"] >= len(rows), told
