"""Jobs with solvers whose trainers die, drawn by a seed, and what of them must hold."""

import json
from collections import Counter, defaultdict
from typing import Any

from exact_job import books, who_took_part
from jobs import JobFolder, Result, python

STEPS, SIMULATIONS = 24, 20


def write_job(
    folder: JobFolder, kills: dict[str, str], trainers: int = 3, batch_size: int = 4, pause_s: float = 0.0, **keys: Any
) -> dict[str, Any]:
    """Write a job of trainers/elastic/stream.py; returns what `check` is to know of it."""
    options = {"batch_size": batch_size, "pause_s": pause_s, "kills": kills}
    job = {
        "trainers": {
            "ranks": trainers,
            "program": python("trainers/elastic/stream.py", json.dumps(options)),
            "elastic": True,
        },
        "solvers": {"groups": 2, "function": "functions.steps:simulate"},
        "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [4, 6]}},
        "buffer": {"policy": "fifo", "capacity": 40},
    }
    folder.variables["STEPS"] = str(STEPS)
    for key, value in keys.items():
        job[key] = {**job[key], **value} if isinstance(value, dict) and key in job else value
    folder.write_job(job)
    return {
        "trainers": trainers,
        "batch_size": batch_size,
        "policy": job["buffer"]["policy"],
        "tail": job["buffer"].get("tail", "drop"),
    }


def trained(job: dict[str, Any], result: Result) -> Counter[int]:
    """Count how often each sample was trained on, and check that the steps were the same on all that live."""
    told = f"{job}\n{result.logs()}"
    assert result.status == 0 and result.summary["status"] == "complete", told
    drawn: dict[int, dict[int, list[int]]] = defaultdict(dict)  # by step and trainer
    made: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
    written = books(result, job["trainers"])
    for trainer, lines in enumerate(written):
        for line in lines:
            if "rows" in line:
                drawn[line["step"]][trainer] = line["rows"]
            elif "made" in line:
                made[line["made"]][trainer] = line["gradient"], line["weights"]
    ended = [trainer for trainer, lines in enumerate(written) if lines and "end" in lines[-1]]
    lost = result.summary.get("lost_trainers", [])
    assert sorted(ended + lost) == list(range(job["trainers"])), told
    assert sorted(made) == list(range(len(made))) and all(set(ended) <= set(of) for of in made.values()), told
    counts: Counter[int] = Counter()
    for step, outcomes in made.items():
        assert len(set(outcomes.values())) == 1, (step, outcomes, told)
        gradient = next(iter(outcomes.values()))[0]
        took_part = who_took_part(drawn[step], set(outcomes), gradient)
        assert took_part, (step, gradient, drawn[step], told)
        for trainer in took_part:
            counts.update(map(int, drawn[step][trainer]))
    return counts


def check(job: dict[str, Any], result: Result) -> None:
    """Each sample was trained on once, but for what the tail leaves out or repeats; in a reservoir at least once."""
    counts = trained(job, result)
    told = result.logs()
    everything = {1 + step + 1000 * simulation for simulation in range(SIMULATIONS) for step in range(STEPS)}
    assert set(counts) <= everything, told
    lacking = everything - set(counts)
    again = {sample: n for sample, n in counts.items() if n > 1}
    most = job["trainers"] * 2 * job["batch_size"]
    if job["policy"] == "reservoir":
        assert len(lacking) < most, (sorted(lacking), told)
    elif job["tail"] == "drop":
        assert not again and len(lacking) < most, (again, sorted(lacking), told)
    else:
        assert not lacking and sum(again.values()) < most, (again, sorted(lacking), told)
