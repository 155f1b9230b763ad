"""A whole job under the sanitizers: C solvers that send blocks, C trainers with their receive threads."""

import json
import os
from pathlib import Path

import pytest
import random_fields
from jobs import PROGRAMS, JobFolder
from sanitized import LIBRARIES, compile_c, objects
from test_exactness import FIELDS

OPTIONS = {
    # MPI's own memory is not instrumented, and not checked.
    "address,undefined": {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1"},
    "thread": {
        "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:exitcode=66",
        "UCX_MEM_EVENTS": "no",  # its hooks call the sanitizer from a thread that is not set up yet
        "PMIX_MCA_gds": "hash",  # the default maps memory where ThreadSanitizer has its own
    },
}


LOOP = "solvers/in_loop", "trainers/publishes_and_cancels", "inference/doubles"


@pytest.fixture(scope="module", params=OPTIONS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A sanitizer, and the folder with the programs built for it."""
    sanitizer, folder = request.param, tmp_path_factory.mktemp("sanitized")
    for name in ("solvers/pattern", "trainers/trainer", "solvers/calls", "trainers/ragged", *LOOP):
        program = [PROGRAMS / f"{name}.c", "-o", folder / Path(name).name]
        compile_c(sanitizer, *program, *objects(sanitizer, tmp_path_factory), *LIBRARIES)
    return sanitizer, folder


@pytest.mark.parametrize("policy", ["reservoir", "fifo"])
def test_a_job_is_clean(
    folder: JobFolder, built: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    sanitizer, programs = built
    for name, value in OPTIONS[sanitizer].items():
        monkeypatch.setenv(name, value)
    folder.job(
        trainers={"ranks": 2, "program": [str(programs / "trainer")]},
        solvers={"groups": 2, "ranks_per_group": 2, "program": [str(programs / "pattern"), "10"]},
        parameters={"count": 20, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 2},
        fields=FIELDS,
        buffer={"policy": policy, "capacity": 24, **({"watermark": 8} if policy == "reservoir" else {})},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    for trainer in range(2):
        assert "validation 1" in result.log("trainer", trainer)
        if policy == "reservoir":
            assert "pages 0" in result.log("trainer", trainer)
        _, _, recorded = result.log("trainer", trainer).partition("recorded ")
        numbers = recorded.split()[::2]
        assert numbers[0] == numbers[1] and int(numbers[0]) > 40, recorded
        assert "Sanitizer" not in result.log("trainer", trainer)
    assert os.listdir(folder.path / "runs" / "job" / "1" / "exits") == []


MESH = {
    "cells": {"shape": ["cell", 3], "dtype": "int64", "index": "nodes", "base": 0, "per": "simulation"},
    "u": {"shape": ["nodes"], "dtype": "float64"},
    "xy": {"shape": ["nodes", 2], "dtype": "float32", "per": "simulation"},
}


@pytest.mark.parametrize("idle", ["", pytest.param("1", marks=pytest.mark.full)])
def test_constants_and_maps_are_clean(
    folder: JobFolder, built: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, idle: str
) -> None:
    """Maps of rows, new ones in each step and for the mesh, and local numbers with ghosts, with two ranks a group.

    With `idle`, the samples of trainer 1 go to the other one.
    """
    sanitizer, programs = built
    for name, value in OPTIONS[sanitizer].items():
        monkeypatch.setenv(name, value)
    spec = {"seed": 3, "ranks": 2, "steps": 6, "lengths": {"nodes": [1, 60], "cell": [0, 40]}, "fields": MESH}
    spec |= {"by_map": ["u", "xy"], "local": ["cells"]}
    (folder.path / "spec.json").write_text(json.dumps(spec))
    random_fields.run_program(folder, "calls.py", "14")
    folder.job(
        trainers={"ranks": 2, "program": [str(programs / "ragged"), *filter(None, [idle])]},
        solvers={"groups": 2, "ranks_per_group": 2, "program": [str(programs / "calls"), "6"]},
        parameters={"count": 12, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 2},
        fields=MESH,
        buffer={"policy": "firo", "capacity": 12, "watermark": 4},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    for trainer, batches in enumerate([18, 0] if idle else [9, 9]):
        log = result.log("trainer", trainer)
        assert f"batches {batches}\n" in log and "Sanitizer" not in log


# The C program replaces a Python process that is to become an inference rank, before that has done anything.
IN_ITS_PLACE = """
import os
words = open("/proc/self/cmdline").read().split("\\0")
if "mpidata.inference" in words:
    os.execv({program!r}, ["inference"])
"""


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.full)])
def test_questions_versions_and_cancels_are_clean(
    folder: JobFolder, built: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, ranks: int
) -> None:
    sanitizer, programs = built
    for name, value in OPTIONS[sanitizer].items():
        monkeypatch.setenv(name, value)
    (folder.path / "first").mkdir()
    (folder.path / "first" / "sitecustomize.py").write_text(IN_ITS_PLACE.format(program=str(programs / "doubles")))
    folder.variables = {"PYTHONPATH": str(folder.path / "first")}
    folder.write(net="def answer(inputs, weights):\n    raise AssertionError\n")
    folder.job(
        trainers={"ranks": 2, "program": [str(programs / "publishes_and_cancels")]},
        solvers={"groups": 2, "ranks_per_group": ranks, "program": [str(programs / "in_loop")]},
        inference={"ranks": 2, "function": "net:answer"},
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [5]}},
        buffer={"policy": "fifo", "capacity": 16},
    )
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["cancelled"] == 4, result.logs()
    assert "Sanitizer" not in result.logs() and "answers " in result.logs(), result.logs()
    assert os.listdir(folder.path / "runs" / "job" / "1" / "exits") == []
