"""The heat equation in three languages and any number of ranks: the trainers get the same bits."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from jobs import PROGRAMS, JobFolder, environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "heat2d"
SIMULATIONS, STEPS = 4, 100
SOLVERS = {"c": ["./heat2d"], "fortran": ["./heat2d_f"], "python": ["python", "heat2d.py"]}
FAST = [("c", 4), ("fortran", 2), ("python", 2)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, require) -> Path:
    require("gfortran")
    folder = tmp_path_factory.mktemp("heat2d") / "heat2d"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("runs", "heat2d", "heat2d_f", "*.o"))
    done = subprocess.run(["make", "-B"], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def first(built: Path) -> dict[str, dict[str, str]]:
    return {}


@pytest.mark.parametrize(
    ("language", "ranks"),
    [
        pytest.param(language, ranks, marks=[] if (language, ranks) in FAST else pytest.mark.full)
        for language in SOLVERS
        for ranks in (1, 2, 4)
    ],
)
def test_same_bits(folder: JobFolder, built: Path, first: dict[str, dict[str, str]], language: str, ranks: int) -> None:
    shutil.copytree(built, folder.path, dirs_exist_ok=True)
    job = yaml.safe_load((built / "heat2d.yaml").read_text())
    job["name"] = "job"
    job["trainers"]["program"] = ["python", str(PROGRAMS / "fingerprints.py")]
    job["solvers"] = {"groups": 2, "ranks_per_group": ranks, "program": SOLVERS[language]}
    job["parameters"]["count"] = SIMULATIONS
    job["validation"] = {"count": 0}
    job["buffer"] = {"policy": "fifo", "capacity": 100, "tail": "repeat"}
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    found = {}
    for trainer in range(2):
        found |= json.loads((folder.path / f"fingerprints-{trainer}.json").read_text())
    assert len(found) == SIMULATIONS * STEPS
    assert len(set(found.values())) == SIMULATIONS * STEPS
    assert first.setdefault("samples", found) == found, "not the bits of the first language and number of ranks"
