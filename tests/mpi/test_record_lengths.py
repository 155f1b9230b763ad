"""A record of fields with lengths holds what the solvers sent."""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import pytest
import random_fields
from jobs import JobFolder, python

SIMULATIONS, VALIDATION, STEPS = 6, 2, 7
FIELDS = {
    "xy": {"shape": ["nodes", 2]},
    "edge_index": {"shape": [2, "edges"], "dtype": "int64", "index": "nodes", "base": 1},
    "u": {"shape": ["nodes"], "dtype": "float64"},
    "corners": {"shape": ["edges", 3], "dtype": "int32", "index": "nodes"},
    "flags": {"shape": [3, "nodes", 2], "dtype": "uint8"},
    "rows": {"shape": ["any"], "dtype": "int32"},
    "wind": {"shape": [3]},
    "spectrum": {"shape": [2, "edges"], "dtype": "complex64"},
    "weights": {"shape": ["nodes"], "dtype": "bfloat16"},
    "inside": {"shape": ["nodes"], "dtype": "bool"},
    "pressure": {"shape": ["nodes"], "optional": True},
    "drag": {"shape": [2], "dtype": "complex128", "optional": True},
}
LENGTHS = {"nodes": [1, 400], "edges": [0, 60], "any": [0, 1]}


def write(folder: JobFolder, every: int, **solvers: Any) -> None:
    fields = {name: {"dtype": "float32", **FIELDS[name]} for name in sorted(FIELDS)}  # as job.yaml has them
    spec = {"seed": 1, "ranks": 2, "steps": STEPS, "lengths": LENGTHS, "fields": fields}
    (folder.path / "spec.json").write_text(json.dumps(spec))
    folder.job(
        trainers={"ranks": 2, "program": python("random_fields/collates.py", 3, 1)},
        solvers={"groups": 2, "ranks_per_group": 2, "program": python("random_fields/solver.py"), **solvers},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": VALIDATION},
        fields=fields,
        lengths={"nodes": {"at_most": 400}},
        buffer={"policy": "firo", "capacity": 20, "watermark": 4, "tail": "drop"},
        record={"path": "samples", "every": every},
    )


def values_in(path: Path) -> int:
    """Return the bytes of all datasets of a file."""
    sizes: list[int] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
    return sum(sizes)


@pytest.mark.full  # the fast tests record random fields
@pytest.mark.parametrize(("start", "every"), [("split", 1), ("spawn", 3)])
def test_record_with_lengths_holds_the_samples_that_were_sent(folder: JobFolder, start: str, every: int) -> None:
    write(folder, every, start=start)
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    drawn = sorted(tuple(step) for note in folder.read_notes("seen", 2) for step in note)
    assert drawn == [(simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS)]
    kept = range(0, STEPS, every)
    found = random_fields.read_record(folder, every)
    for what, first, count in (("training", 0, SIMULATIONS), ("validation", SIMULATIONS, VALIDATION)):
        assert found[what]["found"] == [[first + i, step] for i in range(count) for step in kept]
        assert found[what]["windows"] == count * (len(kept) - 1)
    paths = sorted((folder.path / "samples").iterdir())
    assert [path.name for path in paths] == ["trainer-0000.h5", "trainer-0001.h5"]
    for path in paths:
        assert os.path.getsize(path) <= 1.1 * values_in(path) + 1e6
