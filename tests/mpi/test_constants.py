"""Whole jobs with constants; test_random_fields also has random ones."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

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
    "late": ["Field 'xy' is put once per simulation, but was put after its first step", "simulation 0, step 2. Put it "
             "after mpidata_next and before the first mpidata_step"],
    "twice": ["Field 'weights' was put twice in one simulation (8 elements, it has 4)", "its rank 0), simulation 0"],
    "not-put": ["Field 'xy' was not put", "simulation 0", " with 'per: simulation' after mpidata_next"],
    "overlap": ["field 'weights'", "overlap", "simulation 0"],
    "hole": ["The blocks of field 'weights' have 2 elements, the field has 4: they leave a hole", "simulation 0"],
    "map-hole": ["Row 3 of field 'weights' is missing: the maps of all ranks have 3 of its 4 rows", "simulation 0"],
    "map-twice": ["Row 1 of field 'weights' was put twice, by ranks 0 and 1 of the group", "simulation 0, before its "
                  "first step"],
    "beyond": ["Field 'ends' has the index 7, but there are 7 'nodes', which are counted from 0 (rank ",
               "simulation 0, before its first step"],
    "longer": ["'u'", "'xy'", "9", "7", "'nodes', which must be equal", "simulation 0, step 2"],
}  # fmt: skip
FULL = ("overlap", "map-twice")  # similar to fields that are put in each step
FIELDS = {
    "xy": {"shape": [16], "dtype": "float64", "per": "simulation"},
    "u": {"shape": [16]},
}


@pytest.mark.parametrize(
    "mistake", [pytest.param(name, marks=[pytest.mark.full] * (name in FULL)) for name in MISTAKES]
)
def test_mistakes_with_constants_fail_the_job(folder: JobFolder, mistake: str) -> None:
    program = python("solvers/mistakes/of_constants.py", mistake)
    folder.job(trainers=DRAIN, solvers={"ranks_per_group": 2, "program": program}, fields=MISTAKEN)
    assert_failed(folder.run(timeout=30), *MISTAKES[mistake])


def write(folder: JobFolder, *arguments: str, fields: Any = None, **keys: Any) -> None:
    """Write a job whose solvers are `constants.mesh:simulate`, and whose trainers compare."""
    folder.job(
        trainers={"ranks": keys.pop("trainers", 1), "program": python("constants/trainer.py", *arguments)},
        solvers={"groups": 2} | keys.pop("solvers", {"function": "constants.mesh:simulate"}),
        fields=fields or FIELDS,
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
        **{"buffer": {"policy": "fifo", "capacity": 40}, **keys},
    )


def seen(folder: JobFolder, result: Result, trainers: int = 1) -> list[dict[str, Any]]:
    assert result.status == 0, result.logs()
    return [json.loads((folder.path / f"seen-{trainer}.json").read_text()) for trainer in range(trainers)]


@pytest.mark.parametrize(
    ("batch", "where"), [("4", "apart"), pytest.param("4", "batch", marks=pytest.mark.full), ("0", "apart")]
)
def test_each_sample_has_the_constants_of_its_simulation(folder: JobFolder, batch: str, where: str) -> None:
    """Constants come as pages, copies of batches or views, and are held while a sample or a view refers to them."""
    write(folder, batch, where, validation={"count": 2}, samples={"statistics": True})
    (notes,) = seen(folder, folder.run())
    assert Counter(map(tuple, notes["drawn"])) == Counter(product(range(4), range(6), [0]))
    assert sorted(map(tuple, notes["validation"])) == list(product([4, 5], range(6), [0]))
    assert len(notes["gone"]) == 4 and "This trainer holds no sample of simulation 0" in notes["gone"][0]


@pytest.mark.parametrize(("nodes", "wide"), [pytest.param(16, 16, marks=pytest.mark.full), (1 << 17, 1 << 14)])
def test_constants_are_sent_once_to_each_trainer(folder: JobFolder, nodes: int, wide: int) -> None:
    folder.variables |= {"NODES": str(nodes), "WIDE": str(wide)}
    fields = {"xy": {**FIELDS["xy"], "shape": [nodes]}, "u": {"shape": [wide]}}
    write(folder, "3", "apart", fields=fields, trainers=2)
    result = folder.run()
    assert len(seen(folder, result, 2)) == 2
    simulations, trainers, steps = 4, 2, 6
    assert result.summary["bytes"] == simulations * (trainers * 8 * nodes + steps * 4 * wide)


@pytest.mark.parametrize(("batch", "where"), [pytest.param("1", "batch", marks=pytest.mark.full), ("0", "apart")])
def test_samples_keep_the_constants_of_their_try(folder: JobFolder, batch: str, where: str) -> None:
    folder.variables["TRIED"] = str(folder.path / "tried")
    write(folder, batch, where, buffer={"policy": "fifo", "capacity": 2})
    result = folder.run()
    (notes,) = seen(folder, result)
    tries = {step: tried for simulation, step, tried in notes["drawn"] if simulation == 0}
    assert tries == {0: 1, 1: 1, 2: 1, 3: 0, 4: 0, 5: 0} and len(notes["drawn"]) == 24
    assert result.summary["retries"][0]["simulation"] == 0


@pytest.mark.parametrize(
    ("trainers", "after"), [pytest.param(*of, marks=pytest.mark.full) for of in ((2, 1), (1, 1), (1, 2))]
)
def test_resume_restores_constants(folder: JobFolder, trainers: int, after: int) -> None:
    """This includes another number of trainers, validation samples, and a statistics file that has the constants."""
    folder.variables |= {"DIES": "1", "SLEEP_S": "0.01"}
    write(
        folder, "3", "batch", trainers=trainers, validation={"count": 1}, samples={"statistics": True},
        buffer={"policy": "firo", "capacity": 60, "watermark": 6}, checkpoint={"every_s": 0},
    )  # fmt: skip
    folder.change_job(parameters={"count": 40, "space": {"alpha": [0.0, 1.0]}})
    died = folder.run()
    assert died.status == 1 and died.run is not None and "exit status 3" in died.output, died.logs()
    again = folder.resume(died.run, "--set", f"trainers.ranks={after}")
    notes = seen(folder, again, after)
    assert all(note["resumed"] > 0 for note in notes) and sum(len(note["drawn"]) for note in notes) > 6
    assert sorted(step for note in notes for step in note["validation"]) == [[40, step, 0] for step in range(6)]


@pytest.mark.full
def test_replay_repeats_draws_and_detects_changed_constants(folder: JobFolder) -> None:
    write(folder, "4", "apart", journal=True)
    first = folder.run()
    (notes,) = seen(folder, first)
    again = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)])
    assert seen(folder, again)[0]["drawn"] == notes["drawn"]
    folder.variables["MOVED"] = "1"
    other = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)])
    assert_failed(other, ", step 0 has other values than in the replayed run")


def test_constants_are_read_from_a_file_of_the_program(folder: JobFolder) -> None:
    (folder.path / "case").mkdir()
    write(
        folder, "4", "apart",
        solvers={
            "carried": {}, "lifetime": "simulation", "case": {"folder": "case"},
            "program": [*python("outputs/writes_mesh.py"), "{simulation}"],
            "output": {"files": {"u": "u_*.npy", "xy": "mesh.npy"}},
        },
    )  # fmt: skip
    (notes,) = seen(folder, folder.run())
    assert Counter(map(tuple, notes["drawn"])) == Counter(product(range(4), range(6), [0]))


@pytest.mark.parametrize(
    ("trainers", "window", "is_carried"),
    [*(pytest.param(*of, marks=pytest.mark.full) for of in ((2, 2, False), (1, 1, False))), (1, 2, True)],
)
def test_constants_are_correct_if_tries_differ_in_lengths(
    folder: JobFolder, compiled: Callable[[str], Path], carried: Callable[..., Path], require: Callable[[str], str],
    trainers: int, window: int, is_carried: bool,
) -> None:  # fmt: skip
    """Constants are put by some ranks only, without rows, by maps, along one another, with deaths and a retry."""
    index = {"per": "simulation", "index": "nodes"}
    program = [str(carried("constants", require("mpicc.mpich")) if is_carried else compiled("constants"))]
    ranks = (
        {"carried": {"ranks": 2}} if is_carried else {"ranks_per_group": 2, "start": "spawn" if window > 1 else "split"}
    )
    folder.job(
        trainers={"ranks": trainers, "program": python("constants/lengths.py", window)},
        solvers={"groups": 2, "program": program, "retries": 2, "tolerate": 5} | ranks,
        fields={
            "mark": {"shape": [], "dtype": "int64", "per": "simulation"},
            "xy": {"shape": ["nodes", 2], "dtype": "float64", "per": "simulation"},
            "empty": {"shape": ["holes", 3], "dtype": "float64", "per": "simulation"},
            "ends": {"shape": [2, "edges"], "dtype": "int64", **index},
            "back": {"shape": ["nodes"], "dtype": "int32", "base": 1, **index},
            "u": {"shape": ["nodes"], "dtype": "float64"},
            "picks": {"shape": ["picked"], "dtype": "int32", "index": "edges"},
        },
        parameters={"count": 8, "space": {"alpha": [0.0, 1.0]}},
        lengths={name: {"at_most": 40} for name in ("nodes", "holes", "edges", "picked")},
        samples={"window": window, "statistics": True},
        buffer={"policy": "fifo", "capacity": 4 * window},
    )  # fmt: skip
    result = folder.run(timeout=90)
    drawn = [tuple(step) for note in seen(folder, result, trainers) for step in note["drawn"]]
    assert sorted(step[:2] for step in drawn) == list(product((0, 1, 2, 3, 6, 7), range(6 - window)))
    assert {retry["simulation"] for retry in result.summary["retries"]} == {0, 1, 2, 3}
    assert {tried for simulation, step, tried in drawn if simulation in (0, 1)} == {1}
