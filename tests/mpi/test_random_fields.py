"""Every element of random fields is correct, and each sample comes once."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import random_fields
from jobs import PROGRAMS, JobFolder, config

from mpidata.native.constants import DTYPES

# The fast seeds, with the replay's seed, have each feature of the first 300: 1, 2 and 4 ranks, 1 to 3 trainers, each
# policy, windows, split, spawn, carried, each language, kinds of batches, records, constants, maps, local numbers,
# optional fields, capacities in bytes. With the other seeds they have nine of ten pairs of these.
FAST_SEEDS, MORE_SEEDS = (30, 274), (21, 22, 35, 37, 47, 75, 103, 184)


@pytest.fixture
def build(
    compiled: Callable[[str], Path], carried: Callable[..., Path], require: Callable[[str], str], tmp_path: Path
) -> random_fields.Build:
    def solver(language: str, is_carried: bool) -> Path:
        if language == "c":
            return (carried if is_carried else compiled)("calls")
        numbers = [f"-DDTYPE_{name}={dtype.number}" for name, dtype in DTYPES.items()]
        source, program = PROGRAMS / "solvers/fortran/calls.F90", tmp_path / "solver"
        options = ["-Wall", "-Werror", "-g", "-fcheck=bounds", *numbers]
        options += ["-DCARRIED"] if is_carried else config("--fflags")
        libraries = config("--fcarried" if is_carried else "--flibs")
        subprocess.run([require("gfortran"), *options, source, "-o", program, *libraries], check=True)
        return program

    return solver


@pytest.mark.parametrize("seed", [*FAST_SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_random_fields(folder: JobFolder, build: random_fields.Build, seed: int) -> None:
    keys, spec = random_fields.write(folder, seed, build=build)
    print(keys)
    random_fields.check(folder, folder.run(timeout=120), keys, spec)


@pytest.mark.parametrize("seed", [72, *(pytest.param(seed, marks=pytest.mark.full) for seed in (21, 30, 75))])
def test_random_fields_in_device_memory(folder: JobFolder, standin: Path, seed: int) -> None:
    keys, spec = random_fields.write(folder, seed)
    folder.variables = {"STANDIN": str(standin), "PYTHONPATH": str(PROGRAMS)}
    result = folder.run(timeout=120)
    random_fields.check(folder, result, keys, spec)
    assert max(map(int, re.findall(r"=> (\d+) copies", result.logs()))) > 10  # of any rank


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 5, 8, 11])
def test_resume_restores_random_fields(folder: JobFolder, seed: int) -> None:
    """Optional fields, windows, a carried program, a record: what the checkpoint holds comes once and correctly.

    The batches may also be of another kind.
    """
    keys, spec = random_fields.write(folder, seed, dies=True)
    died = folder.run(timeout=120)
    assert died.status == 1 and died.run is not None and "exit status 3" in died.output, died.logs()
    spec["ragged"] = "padded" if spec["ragged"] == "packed" else "packed"
    (folder.path / "spec.json").write_text(json.dumps(spec))
    random_fields.check(folder, folder.resume(died.run, timeout=120), keys, spec)
    assert all(note["resumed"] > 0 for note in folder.read_notes("seen", keys["trainers"]["ranks"]))


@pytest.mark.parametrize("seed", [22, *(pytest.param(seed, marks=pytest.mark.full) for seed in (11, 47, 184))])
def test_a_replay_has_the_same_batches(folder: JobFolder, seed: int) -> None:
    keys, spec = random_fields.write(folder, seed)
    folder.change_job(journal=True)
    first = folder.run(timeout=120)
    random_fields.check(folder, first, keys, spec)
    notes = folder.read_notes("seen", keys["trainers"]["ranks"])
    if "record" in keys:
        (folder.path / "samples").rename(folder.path / "first")
    again = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)], timeout=120)
    assert again.status == 0, again.logs()
    assert folder.read_notes("seen", keys["trainers"]["ranks"]) == notes


@pytest.mark.parametrize(
    "seed", [47, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(30, 50) if seed != 47)]
)
def test_deaths_within_steps_lose_no_sample(folder: JobFolder, build: random_fields.Build, seed: int) -> None:
    """Ranks also die between constants, between the parts of a field, and within a window."""
    keys, spec = random_fields.write(folder, seed, build=build, kills=5)
    print(keys, spec["kills"])
    result = folder.run(timeout=200)
    random_fields.check(folder, result, keys, spec)
    died = len(list(folder.path.glob("killed-*")))
    assert died == len({tuple(kill) for kill in spec["kills"]})
    # The carrier of a program survives.
    assert result.summary["retries" if "carried" in keys["solvers"] else "lost_groups"]
