"""Fields that are put once a simulation: whole jobs. Fields drawn at random, with such ones, are in test_random_fields."""

import json
import os
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import DRAIN, JobFolder, Result, python
from test_misuse import assert_failed

MISTAKEN = {
    "xy": {"shape": ["nodes", 2], "per": "simulation"},
    "ends": {"shape": [2, "edges"], "dtype": "int64", "index": "nodes", "per": "simulation"},
    "weights": {"shape": [4], "per": "simulation"},
    "u": {"shape": ["nodes"], "dtype": "float64"},
}
MISTAKES = {
    "late": ["Field 'xy' is put once a simulation, but was put after its first step", "simulation 0, step 2. Put it after "
             "mpidata_next and before the first mpidata_step"],
    "twice": ["Field 'weights' was put twice in one simulation (8 elements, it has 4)", "group 0, its rank 0), simulation 0"],
    "not-put": ["Field 'xy' was not put", "simulation 0", " with 'per: simulation' after mpidata_next"],
    "overlap": ["field 'weights'", "overlap", "simulation 0"],
    "beyond": ["Field 'ends' has the index 7, but there are 7 'nodes', which are counted from 0 (rank ",
               "simulation 0, before its first step"],
    "longer": ["Fields 'u' and 'xy' have 9 and 7 'nodes', which must be as many", "simulation 0, step 2"],
}  # fmt: skip
FIELDS = {
    "xy": {"shape": [16], "dtype": "float64", "per": "simulation"},
    "u": {"shape": [16]},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(folder: JobFolder, mistake: str) -> None:
    program = python("solvers/mistakes/of_constants.py", mistake)
    folder.job(trainers=DRAIN, solvers={"ranks_per_group": 2, "program": program}, fields=MISTAKEN)
    assert_failed(folder.run(timeout=30), *MISTAKES[mistake])


def write(folder: JobFolder, *arguments: str, fields: Any = None, **keys: Any) -> None:
    """Write a job whose solvers are `constants.mesh:simulate`, and whose trainers compare."""
    folder.job(
        trainers={"ranks": keys.pop("trainers", 1), "program": python("constants/trainer.py", *arguments)},
        solvers={"function": "constants.mesh:simulate", "groups": 2} | keys.pop("solvers", {}),
        fields=fields or FIELDS,
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
        **{"buffer": {"policy": "fifo", "capacity": 40}, **keys},
    )


def seen(folder: JobFolder, result: Result, trainers: int = 1) -> list[dict[str, Any]]:
    assert result.status == 0, result.logs()
    return [json.loads((folder.path / f"seen-{trainer}.json").read_text()) for trainer in range(trainers)]


@pytest.mark.parametrize(("batch", "where"), [("4", "apart"), ("4", "batch"), ("0", "apart")])
def test_each_sample_has_those_of_its_simulation(folder: JobFolder, batch: str, where: str) -> None:
    """Whole pages, copies of batches, views of single samples; they are held while a sample or a view refers to them."""
    write(folder, batch, where, validation={"count": 2}, samples={"statistics": True})
    (notes,) = seen(folder, folder.run())
    assert Counter(map(tuple, notes["drawn"])) == Counter(product(range(4), range(6), [0]))
    assert sorted(map(tuple, notes["validation"])) == list(product([4, 5], range(6), [0]))
    assert len(notes["gone"]) == 4 and "This trainer holds no sample of simulation 0" in notes["gone"][0]
