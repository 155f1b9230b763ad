"""If only some trainers draw, the others' samples go to them, each once and correctly."""

import json
import random
from collections import Counter
from itertools import product
from typing import Any

import pytest
import random_fields
from jobs import JobFolder, Result, python


def draw(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generate a job with random fields in which some trainers draw nothing."""
    keys, spec = random_fields.draw(seed)
    chance = random.Random(f"{seed} idle")
    trainers = chance.choice([2, 2, 3, 4])
    spec["idle"] = sorted(chance.sample(range(trainers), chance.randint(1, trainers - 1)))
    spec["work_s"] = chance.choice([0.0, 0.02])
    keys["trainers"] = {"ranks": trainers, "program": python("random_fields/trainer.py", random_fields.BATCH, 1, 1)}
    keys["parameters"]["count"] = 6 * trainers
    keys["samples"]["window"] = 1
    keys["buffer"].pop("repeats", None)
    keys["buffer"]["tail"] = "repeat" if chance.random() < 0.3 else "drop"
    spec["fields"]["plain"] = keys["fields"]["plain"] = {"dtype": "float32", "shape": [2]}
    if isinstance(capacity := keys["buffer"]["capacity"], str):
        keys["buffer"]["capacity"] = f"{float(capacity.removesuffix(' KB')) + 0.1:.3f} KB"  # one more field
    else:
        keys["buffer"]["capacity"] = chance.choice([8, 40])
    return keys, spec


def run(folder: JobFolder, keys: dict[str, Any], spec: dict[str, Any]) -> Result:
    (folder.path / "spec.json").write_text(json.dumps(spec))
    folder.job(**keys)
    return folder.run(timeout=120)


def check(folder: JobFolder, result: Result, keys: dict[str, Any], spec: dict[str, Any]) -> None:
    """All samples are drawn, except those that `tail: drop` omits."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    notes = folder.read_notes("seen", keys["trainers"]["ranks"])
    draws = [note for rank, note in enumerate(notes) if rank not in spec["idle"]]
    drawn = Counter(tuple(step) for note in draws for step in note["drawn"])
    every = set(product(range(keys["parameters"]["count"]), range(spec["steps"])))
    repeats, reservoir = keys["buffer"]["tail"] == "repeat", keys["buffer"]["policy"] == "reservoir"
    assert set(drawn) <= every and len({len(note["drawn"]) for note in draws}) == 1
    dropped = random_fields.BATCH * len(draws) + len(spec["idle"])  # incomplete batches, and what came after the last
    if reservoir and len(draws) > 1:  # the trainer with the fewest samples at the end of the stream ends all
        dropped = len(every) // 8
    assert len(every - set(drawn)) < (1 if repeats else dropped), drawn
    if not reservoir and not repeats:
        assert max(drawn.values()) == 1
    samples = result.summary["samples"]
    assert samples["received"] == len(every) and sum(samples["by_draws"][1:]) == len(set(drawn))
    assert samples["handed_over"] == sum(samples["per_trainer"][rank] for rank in spec["idle"])
    assert [event["trainer"] for event in result.events() if event["event"] == "hand_over"] == spec["idle"]
    if keys["samples"]["statistics"]:
        found = json.loads((folder.path / "runs/job/1/statistics.json").read_text())["fields"]["plain"]
        assert found["count"] == [2 * len(every)], "trainer 0 writes it, whether it draws or not"


# The seeds cover each policy, both tails, one drawing trainer and several, lengths, constants, optional fields,
# statistics, records, capacities in bytes, carried programs.
SEEDS = (0, 1, 2, 3, 5, 10, 17, 19, 28, 29, 33)


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS)
def test_samples_of_idle_trainers_go_to_drawing_trainers(folder: JobFolder, seed: int) -> None:
    keys, spec = draw(seed)
    print(keys, spec)
    check(folder, run(folder, keys, spec), keys, spec)


def test_short_stream_ends_only_after_all_samples_are_drawn(folder: JobFolder) -> None:
    """The trainer that draws has reported that it has all of its own samples before those of the other one arrive."""
    keys, spec = draw(5)
    spec |= {"steps": 4, "idle": [1]}
    keys["trainers"]["ranks"] = 2
    keys["parameters"]["count"] = 6  # four batches are granted to all at the start: as many as the share of each has
    keys["buffer"] = {"policy": "fifo", "capacity": 100, "tail": "drop"}
    check(folder, run(folder, keys, spec), keys, spec)


@pytest.mark.full
def test_late_trainer_draws_samples_that_arrive_after_its_start(folder: JobFolder) -> None:
    """All get equally many batches, as if it had started with the others, which have what it had not drawn."""
    folder.variables = {"STEPS": "20", "SLEEP_S": "0.002"}
    folder.job(
        trainers={"ranks": 3, "program": python("trainers/draws_late.py")},
        solvers={"groups": 2, "function": "functions.steps:simulate"},
        parameters={"count": 60, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 20},
    )
    result = folder.run(timeout=100)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    batches = folder.read_notes("drawn", 3)
    drawn = Counter(tuple(sample) for of in batches for batch in of for sample in batch)
    handed = result.summary["samples"]["handed_over"]
    assert max(drawn.values()) == 1 and len({len(of) for of in batches}) == 1 and len(batches[1]) > 20
    assert 20 <= handed < 200 and sum(drawn.values()) > 60 * 20 - 3 * (handed + 4)
    failed = [event["reason"] for event in result.events() if event["event"] == "checkpoint_failed"]
    assert failed == ["a trainer drew nothing, and its samples went to others"]
    assert not list((folder.path / "runs/job/1/checkpoints").glob("*"))
