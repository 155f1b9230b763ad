"""Jobs with fields drawn at random: lengths, shapes, dtypes, ranks, trainers, policies, windows, starts."""

import json
import math
import random
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
from jobs import JobFolder, Result, python

DTYPES = ("float32", "float64", "int32", "int64", "uint8")
BATCH, VALIDATION = 3, 2


def draw(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a job file's keys, and what spec.json says."""
    chance = random.Random(seed)
    ranks, trainers, window = chance.choice([1, 2, 4]), chance.choice([1, 1, 2, 3]), chance.choice([1, 1, 2])
    lengths = {name: [1, chance.choice([1, 9, 3000])] for name in chance.sample(["nodes", "edges", "rows"], 2)}
    lengths["any"] = [0, chance.choice([2, 40])]
    fields: dict[str, dict[str, Any]] = {}
    names = list(lengths)
    for number in range(chance.randint(3, 6)):
        shape: list[Any] = [chance.choice([1, 2, 5]) for _ in range(chance.randint(0, 3))]
        if number < len(names) or chance.random() < 0.5:
            shape.insert(chance.randint(0, len(shape)), names[number] if number < len(names) else chance.choice(names))
        fields[f"f{number}"] = {"dtype": chance.choice(DTYPES), "shape": shape}
        if any(isinstance(extent, str) for extent in shape) and chance.random() < 0.4:
            index = {"dtype": chance.choice(["int32", "int64"]), "index": names[0], "base": chance.choice([0, 1])}
            fields[f"f{number}"] |= index
        elif number >= len(names) and chance.random() < 0.5:  # the first ones have all lengths
            fields[f"f{number}"]["optional"] = True
    carried = ranks == 1 and chance.random() < 0.5
    policy, simulations = chance.choice(["fifo", "firo", "reservoir"]), chance.randint(3, 8)
    steps, count = chance.randint(window + 1, 12), trainers * simulations
    kinds = ["packed", "padded"] + (["nested"] if window == 1 else [])
    ragged = random.Random(f"{seed} ragged").choice(kinds)
    fits = random.Random(f"{seed} capacity").choice([None, 1, 4, 40])  # samples of the greatest size; None: 40 of any
    capacity: int | str = 40 * window if fits is None else f"{fits * window * most_bytes(fields, lengths) / 1000} KB"
    spec = {"seed": seed, "ranks": ranks, "steps": steps, "lengths": lengths, "fields": fields, "ragged": ragged}
    program = python("random_fields/trainer.py", BATCH, window, 1)
    keys = {
        "seed": seed,
        "trainers": {"ranks": trainers, "program": program},
        "solvers": {
            "groups": chance.choice([1, 2]), "ranks_per_group": ranks, "program": python("random_fields/solver.py"),
        } | ({"carried": {"ranks": 1}} if carried else {"start": chance.choice(["split", "split", "spawn"])}),
        "parameters": {"count": count, "space": {"alpha": [0.0, 1.0]}},
        "validation": {"count": VALIDATION},
        "fields": fields,
        "lengths": {name: {"at_most": most} for name, (_, most) in lengths.items() if carried or chance.random() < 0.5},
        "samples": {"window": window, "statistics": chance.random() < 0.5},
        "buffer": {"policy": policy, "capacity": capacity, "tail": "drop"}
        | ({"watermark": 4} if policy == "firo" else {})
        | ({"repeats": 1.5} if policy == "reservoir" else {}),
    }  # fmt: skip
    return keys, spec


def most_bytes(fields: dict[str, dict[str, Any]], lengths: dict[str, list[int]]) -> int:
    """Bytes of the values and lengths of a step that is as long as they get."""
    extents = {field: [lengths[e][1] if isinstance(e, str) else e for e in of["shape"]] for field, of in fields.items()}
    values = sum(np.dtype(of["dtype"]).itemsize * math.prod(extents[field]) for field, of in fields.items())
    return values + 8 * len(lengths)


def write(folder: JobFolder, seed: int, dies: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the job of a seed; dies: of which trainer 0 dies once."""
    keys, spec = draw(seed)
    spec["dies"] = dies
    if dies:
        keys["parameters"]["count"] *= 4
    folder.job(**keys)
    (folder.path / "spec.json").write_text(json.dumps(spec))
    return keys, spec


def check(folder: JobFolder, result: Result, keys: dict[str, Any], spec: dict[str, Any]) -> None:
    """Each sample came, once where the policy says so, but for the last that make no batches; the trainers compare."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    notes = folder.read_notes("seen", keys["trainers"]["ranks"])
    count, window, begins = keys["parameters"]["count"], keys["samples"]["window"], spec["steps"]
    every = Counter(product(range(count), range(begins - window + 1)))
    drawn = Counter(tuple(step) for note in notes for step in note["drawn"])
    held = Counter(tuple(step) for note in notes for step in note["validation"])
    assert held == Counter(product(range(count, count + VALIDATION), range(begins - window + 1)))
    assert set(drawn) <= set(every)
    if keys["buffer"]["policy"] == "reservoir":
        return
    lost = sum(every.values()) - sum(drawn.values())
    assert max(drawn.values()) == 1 and lost < BATCH * keys["trainers"]["ranks"] + begins * count // 4
