"""Random jobs whose trainers die at named points, and the checks of their results."""

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from jobs import JobFolder, Result, python, read_lines
from numpy.typing import NDArray

POINTS = ["backward", "sum", "reduced", "agree", "agreed", "regroup", "regrouped"]
JOIN_POINTS = ["meet", "met", "join.send", "join.receive"]
WAYS = ["SIGKILL", "SIGSEGV", "exit", "leave", "abort", "fails", "quits"]
# Deaths while a spare replaces trainer 2: who dies, by number and point, and all trainers that have died then.
SECOND_DEATHS = [
    ({"0": "join.send:1"}, [0, 2]),
    ({"0": "meet:1"}, [0, 2]),
    ({"1": "met:1"}, [1, 2]),
    ({"3": "join.receive:1"}, [2, 3]),
    ({"3": "met:1"}, [2, 3]),
]


def write_parts(folder: JobFolder, rows: list[int]) -> None:
    """Write part files whose rows are numbered from 1."""
    parts = folder.path / "parts"
    parts.mkdir()
    first = 1
    for number, count in enumerate(rows):
        np.savez(parts / f"{number}.npz", row=np.arange(first, first + count, dtype=np.int64))
        first += count


def write_job(
    folder: JobFolder,
    trainers: int,
    loaders: int,
    options: dict[str, Any],
    at_least: int = 1,
    timeout_s: float = 600,
    spares: int = 0,
    exceptions: str = "end",
    **more: Any,
) -> None:
    """Write a job of trainers/elastic/exact.py."""
    program = python("trainers/elastic/exact.py", json.dumps(options))
    job = {
        "trainers": {
            "ranks": trainers,
            "spares": spares,
            "program": program,
            "elastic": {"at_least": at_least, "exceptions": exceptions},
            "timeout_s": timeout_s,
        },
        "loaders": {"ranks": loaders},
        **more,
    }
    folder.write_job(job)


def draw(seed: int) -> dict[str, Any]:
    """Generate a job: `rows` of its parts, `trainers`, `loaders` and the `options` of the script."""
    dice = random.Random(seed)
    trainers = dice.randint(2, 5)
    dying = dice.sample(range(trainers), dice.randint(1, min(2, trainers - 1)))
    kills = {}
    for trainer in dying:
        if dice.random() < 0.7:
            point = dice.choice(POINTS)
            kills[str(trainer)] = f"{point}:{1 if point.startswith('regroup') else dice.randint(1, 12)}"
        else:
            kills[str(trainer)] = f"{dice.randint(0, 12)} {dice.choice(WAYS)}"
    rows = [dice.randint(20, 90) for _ in range(dice.randint(1, 5))]
    return {
        "rows": rows,
        "trainers": trainers,
        "loaders": dice.randint(1, 2),
        "options": {
            "batch_size": dice.randint(2, 9),
            "epochs": dice.randint(2, 3),
            "shuffle": dice.choice(["rows", "parts", None]),
            "drop_last": False,
            "kills": kills,
            "loader": dice.choice([0, 0, sum(rows)]),
        },
    }


def draw_with_spares(seed: int) -> dict[str, Any]:
    """Generate such a job with spares, some of which may also die."""
    dice = random.Random(f"spares {seed}")
    job = draw(seed)
    job["spares"] = dice.randint(1, 2)
    kills = list(job["options"]["kills"].values())
    if not all(kill.startswith("regroup") for kill in kills):  # otherwise nobody dies, and no place is free
        job["options"]["joins"] = min(job["spares"], len(kills))
    if dice.random() < 0.5:
        point = dice.choice(JOIN_POINTS)
        victim = job["trainers"] if point.endswith("receive") else dice.randrange(job["trainers"] + 1)
        if str(victim) not in job["options"]["kills"] and job["trainers"] > len(job["options"]["kills"]) + 1:
            job["options"]["kills"][str(victim)] = f"{point}:1"
            job["options"]["joins"] = 0
    return job


def books(result: Result, trainers: int) -> list[list[dict[str, Any]]]:
    """Return the lines that each trainer has noted."""
    assert result.run is not None, result.output
    paths = [result.run / f"book-{trainer}.jsonl" for trainer in range(trainers)]
    return [read_lines(path) if path.exists() else [] for path in paths]


def check(job: dict[str, Any], result: Result) -> None:
    """Each row was trained on once an epoch; gradients are of all that took part, and the same on all that live."""
    told = f"{job}\n{result.logs()}"
    assert result.status == 0 and result.summary["status"] == "complete", told
    everyone = job["trainers"] + job.get("spares", 0)
    written = books(result, everyone)
    drawn: dict[int, dict[int, list[int]]] = defaultdict(dict)  # by step and trainer
    made: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
    epochs = {}
    for trainer, lines in enumerate(written):
        for line in lines:
            if "rows" in line:
                drawn[line["step"]][trainer] = line["rows"]
                epochs[line["step"]] = line["epoch"]
            elif "made" in line:
                made[line["made"]][trainer] = line["gradient"], line["weights"]
    ended = [trainer for trainer, lines in enumerate(written) if lines and "end" in lines[-1]]
    lost = result.dead_trainers()
    waited = [trainer for trainer in range(job["trainers"], everyone) if not written[trainer] and trainer not in lost]
    retired = [event["trainer"] for event in result.events() if event["event"] == "trainer_retired"]
    assert sorted(ended + lost + waited + retired) == list(range(everyone)), told
    trained: dict[int, Counter[int]] = defaultdict(Counter)
    for step, outcomes in made.items():
        assert len(set(outcomes.values())) == 1, (step, outcomes, told)
        gradient = next(iter(outcomes.values()))[0]
        took_part = who_took_part(drawn[step], set(outcomes), gradient)
        assert took_part, (step, gradient, drawn[step], told)
        for trainer in took_part:
            trained[epochs[step]].update(drawn[step][trainer])
    from_step = {
        trainer: min((line["step"] for line in written[trainer] if "rows" in line), default=0) for trainer in ended
    }
    assert sorted(made) == list(range(len(made))), told
    assert all(
        step in made and trainer in made[step] for trainer in ended for step in range(from_step[trainer], len(made))
    ), told
    rows = set(range(1, sum(job["rows"]) + 1))
    assert len(trained) >= job["options"]["epochs"] and sorted(trained) == list(range(len(trained))), told
    for epoch, counts in trained.items():
        assert set(counts) == rows, (epoch, rows - set(counts), told)
        again = sum(counts.values()) - len(rows)
        assert again < job["trainers"], (epoch, again, {row: n for row, n in counts.items() if n > 1}, told)
        if again:  # only if fewer rows were left than trainers
            assert lost, told


def mixed(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hash the numbers, as the trainers' book.py does."""
    once = numbers * 2654435761 % (1 << 32)
    return (once ^ (once >> 15)) * 739982445 % (1 << 32)  # consecutive numbers are no longer consecutive


def who_took_part(drawn: dict[int, list[int]], made: set[int], gradient: float, *, weighed: bool = False) -> set[int]:
    """Return whose rows a gradient contains: those that made the step, and any of those that died in it.

    The gradient is the mean of their means or, if weighed, the mean of all rows.
    """
    dead = sorted(set(drawn) - made)
    for mask in range(1 << len(dead)):
        some = made | {trainer for i, trainer in enumerate(dead) if mask >> i & 1}
        parts = [mixed(np.array(drawn[trainer], np.int64)) for trainer in some]
        mean = np.mean(np.concatenate(parts) if weighed else [np.mean(part) for part in parts])
        if np.isclose(mean, gradient, rtol=1e-12):
            return some
    return set()


def run(
    folder: JobFolder,
    job: dict[str, Any],
    timeout: float = 120,
    meanwhile: Callable[[], object] = lambda: None,
    **more: Any,
) -> Result:
    """Run a generated job, and call `meanwhile` while it runs."""
    write_parts(folder, job["rows"])
    write_job(folder, job["trainers"], job["loaders"], job["options"], spares=job.get("spares", 0), **more)
    process = folder.start()
    meanwhile()
    result = folder.finish(process, timeout, time.monotonic())
    folder.assert_nothing_left()
    return result
