"""Trainers draw global batches, whose size stays the same whoever is alive."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs import JobFolder, python
from stream_job import POINTS, SIMULATIONS, STEPS, by_c_solver, check, draw_together, sizes, write_job


def test_global_batch_size_stays_the_same_after_a_death(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"}, global_batch_size=16, buffer={"capacity": 60})
    result = folder.run(timeout=60)
    check(job, result)
    drawn = sizes(job, result)
    assert [drawn[step] for step in range(4)] == [[6, 5, 5], [5, 6, 5], [5, 5, 6], [6, 5, 5]], drawn
    assert len(drawn) > 25 and all(sorted(drawn[step]) == [5, 5, 6] for step in range(10)), drawn
    assert all(drawn[step] == [8, 8] for step in drawn if step > 9), drawn


@pytest.mark.parametrize(
    ("tail", "total", "steps"), [("drop", 13, 36), pytest.param("repeat", 17, 29, marks=pytest.mark.full)]
)
def test_global_batches_are_split_evenly_without_elastic(folder: JobFolder, tail: str, total: int, steps: int) -> None:
    buffer = {"policy": "firo", "tail": tail}
    job = write_job(folder, {}, global_batch_size=total, at_least=None, buffer=buffer)
    result = folder.run(timeout=60)
    check(job, result)
    drawn = sizes(job, result)
    assert SIMULATIONS * STEPS // total + (tail == "repeat") == steps == len(drawn), drawn
    assert all(sum(of) == total and max(of) - min(of) == 1 for of in drawn.values()), drawn


@pytest.mark.full
def test_global_batches_respect_the_draw_budget(folder: JobFolder) -> None:
    buffer = {"policy": "reservoir", "repeats": 1.5}
    job = write_job(folder, {}, global_batch_size=13, at_least=None, buffer=buffer)
    result = folder.run(timeout=60)
    check(job, result)
    drawn = sizes(job, result)
    assert len(drawn) == SIMULATIONS * STEPS * 3 // 2 // 13 and all(sum(of) == 13 for of in drawn.values()), drawn


@pytest.mark.full
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_global_batch_size_stays_the_same_after_two_deaths(folder: JobFolder, policy: str, tail: str) -> None:
    buffer = {"policy": policy, "capacity": 60, "tail": tail}
    job = write_job(folder, {"1": "7 SIGKILL", "2": "15 SIGKILL"}, global_batch_size=16, buffer=buffer)
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [1, 2], result.logs()
    drawn = sizes(job, result)
    assert all(drawn[step] == [16] for step in drawn if step > 15) and max(drawn) > 20, drawn


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_job_survives_a_death_at_any_point(folder: JobFolder, point: str) -> None:
    kills = {"1": f"{point}:7"} if point in POINTS[:4] else {"0": "2 SIGKILL", "1": f"{point}:1"}
    job = write_job(folder, kills, trainers=4, global_batch_size=18, buffer={"capacity": 60})
    check(job, folder.run(timeout=60))


@pytest.mark.full
def test_global_batches_are_exact_with_groups_of_several_ranks(
    folder: JobFolder, compiled: Callable[[str], Path]
) -> None:
    job = write_job(folder, {"2": "9 SIGKILL"}, global_batch_size=13, **by_c_solver(compiled))
    check({**job, "more": 1}, folder.run(timeout=60))


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 3])
def test_resume_with_another_number_of_trainers_keeps_the_global_batch_size(folder: JobFolder, again: int) -> None:
    kills = {"0": "12 SIGKILL", "1": "22 SIGKILL"}
    more = {"at_least": 2, "pause_s": 0.05, "checkpoint": {"every_s": 0.2}, "buffer": {"capacity": 60}}
    job = write_job(folder, kills, global_batch_size=13, **more)
    result = folder.run(timeout=60)
    assert result.status == 1 and result.run is not None, result.logs()
    sets = ["--set", f"trainers.ranks={again}", "--set", "trainers.elastic.at_least=1"]
    resumed = folder.resume(result.run, *sets, timeout=60)
    check(job, resumed)
    drawn = sizes(job, resumed)
    assert sum(drawn[max(drawn)]) == 13 and len(drawn[max(drawn)]) == again, drawn


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw_together(seed))
    check(job, folder.run(timeout=100))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"global_batch_size": 2}, "global_batch_size is 2, but there are 3 trainers, each of which needs a sample."),
        pytest.param(
            {"global_batch_size": 64, "buffer": {"capacity": 50}},
            "batches of 64 samples, as trainers.elastic.at_least trainers would have, need at least 64.",
            marks=pytest.mark.full,
        ),
        pytest.param(
            {"global_batch_size": 12, "at_least": None, "journal": True},
            "global_batch_size does not go with 'journal' in the job file",
            marks=pytest.mark.full,
        ),
    ],
)
def test_incompatible_global_batch_sizes_are_refused(folder: JobFolder, keys: dict[str, Any], told: str) -> None:
    write_job(folder, {}, **keys)
    result = folder.run(timeout=60)
    assert result.status == 1 and told in result.output, result.logs()


SIMULATE = """
import mpidata
import numpy as np


def simulate(alpha):
    yield mpidata.Constants(mesh=np.full(5, alpha))
    for step in range(21):
        yield float(step), {"u": np.full(1 + step % 3, alpha + step)}
"""
TRAIN = """
import sys

import mpidata

ragged, constants = sys.argv[1:]
stream = mpidata.MPIStreamDataset(global_batch_size=7, ragged=ragged, constants=constants)
for batch in stream:
    lengths = batch["nodes"].tolist()
    assert lengths == (1 + batch["step"] % 3).tolist(), batch
    parts = batch["u"].split(lengths) if ragged == "packed" else batch["u"]
    for i, (alpha, step) in enumerate(zip(batch["parameters"][:, 0], batch["step"])):
        assert (parts[i][: lengths[i]] == alpha + step).all() and (parts[i][lengths[i] :] == 0).all(), batch
        mesh = batch["mesh"][i] if constants == "batch" else stream.constants(batch["simulation"][i])["mesh"]
        assert (mesh == alpha).all() and len(mesh) == 5
    print("=>", len(lengths), *(21 * batch["simulation"] + batch["step"]).tolist())
"""


@pytest.mark.parametrize(
    ("ragged", "constants"), [("packed", "batch"), pytest.param("padded", "apart", marks=pytest.mark.full)]
)
def test_global_batches_with_lengths_and_constants_are_exact(folder: JobFolder, ragged: str, constants: str) -> None:
    folder.write(train=TRAIN, waves=SIMULATE)
    folder.job(
        trainers={"ranks": 3, "program": python(str(folder.path / "train.py"), ragged, constants)},
        solvers={"groups": 2, "function": "waves:simulate"},
        parameters={"count": 15, "space": {"alpha": [0.0, 1.0]}},
        fields={
            "u": {"shape": ["nodes"], "dtype": "float64"},
            "mesh": {"shape": [5], "dtype": "float64", "per": "simulation"},
        },
    )
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["batches"]["per_trainer"] == [45, 45, 45], result.logs()
    lines = [line for trainer in range(3) for line in result.marked("trainer", trainer)]
    drawn = [[int(number) for number in line.split()] for line in lines]
    assert sorted(number for _, *numbers in drawn for number in numbers) == list(range(315)), drawn
    assert {size for size, *_ in drawn} == {2, 3} and sum(size for size, *_ in drawn) == 315, drawn
