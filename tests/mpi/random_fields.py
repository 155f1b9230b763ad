"""Jobs with random fields: lengths, shapes, dtypes, ranks, trainers, policies, windows, starts, records."""

import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from jobs import PROGRAMS, JobFolder, Result, python

from mpidata.dtypes import numpy_dtype
from mpidata.native.constants import DTYPES

COMMON = ("float32", "float64", "int32", "int64", "uint8")
BATCH, VALIDATION = 3, 2
LANGUAGES = ("python", "c", "fortran")
Build = Callable[[str, bool], Path]
"""Makes the solver in a language; whether it is carried."""


def draw_constants(seed: int, fields: dict[str, dict[str, Any]]) -> None:
    """Make some fields constants, but not all, together with the fields that their indices refer to."""
    chance = random.Random(-1 - seed)
    if chance.random() < 0.3:
        return
    chosen = [name for name in fields if chance.random() < 0.4]
    counted = {fields[name].get("index") for name in chosen} - {None}
    chosen += [name for name in fields if counted & set(fields[name]["shape"]) and name not in chosen]
    for name in chosen if len(chosen) < len(fields) else chosen[1:1]:
        fields[name]["per"] = "simulation"


def draw(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generate the keys of a job file, and the content of spec.json."""
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
        fields[f"f{number}"] = {"dtype": chance.choice(COMMON), "shape": shape}
        if any(isinstance(extent, str) for extent in shape) and chance.random() < 0.4:
            index = {"dtype": chance.choice(["int32", "int64"]), "index": names[0], "base": chance.choice([0, 1])}
            fields[f"f{number}"] |= index
        elif number >= len(names) and chance.random() < 0.5:  # the first fields have all lengths
            fields[f"f{number}"]["optional"] = True
    draw_constants(seed, fields)
    maps = random.Random(seed + 1)  # a separate generator, so that the seeds give the same jobs as before
    by_map = [name for name, field in fields.items() if field["shape"] and maps.random() < 0.3]
    local = [
        name for name, field in fields.items() if field.get("index") and name not in by_map and maps.random() < 0.5
    ]
    carried = ranks == 1 and chance.random() < 0.5
    policy, simulations = chance.choice(["fifo", "firo", "reservoir"]), chance.randint(3, 8)
    steps, count = chance.randint(window + 1, 12), trainers * simulations
    kinds = ["packed", "padded"] + (["nested"] if window == 1 else [])
    ragged = random.Random(f"{seed} ragged").choice(kinds)
    fits = random.Random(f"{seed} capacity").choice([None, 1, 4, 40])  # samples of the greatest size; None: 40 of any
    spec = {"seed": seed, "ranks": ranks, "steps": steps, "lengths": lengths, "fields": fields, "ragged": ragged}
    spec |= {"gathers": seed % 2 == 1, "by_map": by_map, "local": local}
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
        "buffer": {"policy": policy, "capacity": 40 * window, "tail": "drop"}
        | ({"watermark": 4} if policy == "firo" else {})
        | ({"repeats": 1.5} if policy == "reservoir" else {}),
    }  # fmt: skip
    if chance.random() < 0.5:
        keys["record"] = {"path": "samples"}
    for entry in fields.values():
        if "index" not in entry and chance.random() < 0.7:
            entry["dtype"] = chance.choice(list(DTYPES))
    have_statistics = ["index" not in entry and DTYPES[entry["dtype"]].has_statistics for entry in fields.values()]
    keys["samples"]["statistics"] &= any(have_statistics)
    if fits is not None:
        keys["buffer"]["capacity"] = f"{fits * window * most_bytes(fields, lengths) / 1000} KB"
    return keys, spec


def most_bytes(fields: dict[str, dict[str, Any]], lengths: dict[str, list[int]]) -> int:
    """Return the bytes of the values and lengths of a step at their greatest."""
    extents = {field: [lengths[e][1] if isinstance(e, str) else e for e in of["shape"]] for field, of in fields.items()}
    values = sum(numpy_dtype(of["dtype"]).itemsize * math.prod(extents[field]) for field, of in fields.items())
    return values + 8 * len(lengths)


def write(
    folder: JobFolder, seed: int, dies: bool = False, build: Build | None = None, kills: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the job of a seed.

    dies: trainer 0 dies once. build: makes solvers that are not in Python. kills: ranks that die within a step.
    """
    keys, spec = draw(seed)
    spec["dies"] = dies
    if dies:
        keys["parameters"]["count"] *= 4
    simulations = keys["parameters"]["count"] + VALIDATION
    if kills:
        spec["kills"] = draw_kills(seed, kills, simulations, spec)
        starts = {} if "carried" in keys["solvers"] else {"start": "spawn"}
        keys["solvers"] |= {"retries": kills, "tolerate": kills, **starts}
    spec["language"] = language = "python" if build is None else language_of(seed, keys)
    (folder.path / "spec.json").write_text(json.dumps(spec))
    if build is not None and language != "python":
        keys["solvers"]["program"] = [str(build(language, "carried" in keys["solvers"])), str(spec["steps"])]
        run_program(folder, "calls.py", str(simulations))
    folder.job(**keys)
    return keys, spec


def language_of(seed: int, keys: dict[str, Any]) -> str:
    """Choose the language of the solvers; not Fortran if it has no kind for one of the dtypes."""
    drawn = random.Random(f"{seed} language").choice(LANGUAGES)
    unsigned = {entry["dtype"] for entry in keys["fields"].values()} & {"uint16", "uint32", "uint64"}
    return "c" if drawn == "fortran" and unsigned else drawn


def draw_kills(seed: int, kills: int, simulations: int, spec: dict[str, Any]) -> list[list[int]]:
    """Choose when ranks die: the simulation, the step, the field before whose puts, and the rank in its group."""
    chance = random.Random(f"{seed} kills")
    below = (simulations, spec["steps"], len(spec["fields"]), spec["ranks"])
    return [[chance.randrange(end) for end in below] for _ in range(kills)]


def run_program(folder: JobFolder, *arguments: str) -> str:
    """Run a program of random_fields; returns what it prints."""
    command = [sys.executable, str(PROGRAMS / "random_fields" / arguments[0]), *arguments[1:]]
    done = subprocess.run(
        command, cwd=folder.path, env=folder.environment(), capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(folder: JobFolder, result: Result, keys: dict[str, Any], spec: dict[str, Any]) -> None:
    """Each sample arrived, once if the policy says so, except the last, which fill no batch; the trainers compare."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    notes = folder.read_notes("seen", keys["trainers"]["ranks"])
    count, window, begins = keys["parameters"]["count"], keys["samples"]["window"], spec["steps"]
    every = Counter(product(range(count), range(begins - window + 1)))
    drawn = Counter(tuple(step) for note in notes for step in note["drawn"])
    if "record" in keys:
        found = read_record(folder)
        assert found["training"]["found"] == [list(step) for step in product(range(count), range(begins))]
        assert len(found["validation"]["found"]) == VALIDATION * begins
    held = Counter(tuple(step) for note in notes for step in note["validation"])
    assert held == Counter(product(range(count, count + VALIDATION), range(begins - window + 1)))
    assert set(drawn) <= set(every)
    if keys["buffer"]["policy"] == "reservoir":
        return
    lost = sum(every.values()) - sum(drawn.values())
    assert max(drawn.values()) == 1 and lost < BATCH * keys["trainers"]["ranks"] + begins * count // 4


def read_record(folder: JobFolder, every: int = 1) -> dict[str, Any]:
    """Compare every element of the record in `samples`, and return which samples it has."""
    found: dict[str, Any] = json.loads(run_program(folder, "read_record.py", "samples", str(every)))
    return found
