"""The heat equation in three languages and any number of ranks, also carried ones: the trainers get the same bits."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from example_copy import copy_example
from jobs import BIN, JobFolder, config, environment, mpicc, python

SIMULATIONS, STEPS = 4, 100
SOLVERS = {"c": ["./heat2d"], "fortran": ["./heat2d_f"], "python": ["python", "heat2d.py"]}
FAST = [("c", 4, 0), ("fortran", 2, 0), ("python", 2, 0), ("c", 2, 2)]
CASES = [(language, ranks, carriers) for language in SOLVERS for ranks in (1, 2, 4) for carriers in (0, 1, 2)]
# As a program that is not a rank of the job.
CARRIED = {
    "heat2d.c": {
        "#include <mpidata.h>": "#include <mpidata_carried.h>",
        "MPI_Comm group;": "MPI_Comm group = MPI_COMM_WORLD;",
        "mpidata_init(MPI_COMM_WORLD, &group)": "mpidata_attach()",
    },
    "heat2d.f90": {
        "use mpidata": "use mpidata_carried",
        "call mpidata_init(MPI_COMM_WORLD, group)": "call mpidata_attach()\n    group = MPI_COMM_WORLD",
    },
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, require) -> Path:
    require("gfortran")
    folder = copy_example("heat2d", tmp_path_factory.mktemp("heat2d") / "heat2d")
    done = subprocess.run(["make"], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def built_carried(built: Path) -> Path:
    folder = built.parent / "carried"
    shutil.copytree(built, folder)
    for name, changes in CARRIED.items():
        text = (folder / name).read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (folder / name).write_text(text)
    options = ["MPIDATA_CFLAGS=", "MPIDATA_FFLAGS="]
    for variable, option in (("MPIDATA_LIBS", "--carried"), ("MPIDATA_FLIBS", "--fcarried")):
        link = subprocess.run([mpicc(), "--showme:link"], capture_output=True, text=True)  # for Open MPI alone
        folder_of_mpi = str(BIN.parent)
        last = link.stdout.replace(folder_of_mpi, folder_of_mpi.replace(" ", "\\ ")) if link.returncode == 0 else ""
        options.append(f"{variable}={shlex.join(config(option))} {last.strip()}")
    done = subprocess.run(["make", "-B", *options], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def first(built: Path) -> dict[str, dict[str, str]]:
    return {}


@pytest.mark.parametrize(
    ("language", "ranks", "carriers"),
    [
        pytest.param(*case, marks=[] if case in FAST else pytest.mark.full)
        for case in CASES
        if case[2] <= case[1]  # 0: the ranks are those of the job
    ],
)
def test_all_languages_and_rank_counts_give_the_same_bits(
    folder: JobFolder, request: pytest.FixtureRequest, built: Path, first: dict[str, dict[str, str]],
    language: str, ranks: int, carriers: int,
) -> None:  # fmt: skip
    shutil.copytree(request.getfixturevalue("built_carried") if carriers else built, folder.path, dirs_exist_ok=True)
    job = yaml.safe_load((built / "heat2d.yaml").read_text())
    job["name"] = "job"
    job["trainers"]["program"] = python("trainers/checks/fingerprints.py")
    job["solvers"] = {"groups": 2, "ranks_per_group": ranks, "program": SOLVERS[language]}
    if carriers:
        job["solvers"] |= {"ranks_per_group": carriers, "carried": {"ranks": ranks}}
    job["parameters"]["count"] = SIMULATIONS
    job["validation"] = {"count": 0}
    job["buffer"] = {"policy": "fifo", "capacity": 100, "tail": "repeat"}
    folder.write_job(job)
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    found = {}
    for fingerprints in folder.read_notes("fingerprints", 2):
        found |= fingerprints
    assert len(found) == SIMULATIONS * STEPS
    assert len(set(found.values())) == SIMULATIONS * STEPS
    assert first.setdefault("samples", found) == found, "not the bits of the first language and number of ranks"
