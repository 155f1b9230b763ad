"""Jobs with MPICH 5 and with Debian's MPICH 4.0 and Open MPI 4.1."""

import json
from pathlib import Path
from typing import Any

import pytest
from example_copy import copy_example
from mpis import ROOT, SIM, Mpi, write_job
from pages import blocks, files

pytestmark = pytest.mark.timeout(1800)

PROGRAMS = Path(__file__).parent / "programs"


def summary(folder: Path, number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "runs" / "job" / str(number) / "summary.json").read_text())
    return found


def check_complete(mpi: Mpi, folder: Path) -> None:
    done = mpi.run("mpidata", "run", "job.yaml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    found = summary(folder)
    assert found["status"] == "complete" and found["samples"]["received"] == 30
    assert found["simulations"]["complete"] == 6


def check_heat(mpi: Mpi, folder: Path, solvers: list[str], count: int) -> None:
    """Build the heat example as a user would, and run it with each of its solvers."""
    example = copy_example("heat2d", folder / "heat2d")
    made = mpi.run("make", cwd=example)
    assert made.returncode == 0, made.stdout + made.stderr
    for number, solver in enumerate(solvers, 1):
        keys = [f"parameters.count={count}", "validation.count=2", "solvers.ranks_per_group=2"]
        few = [f"--set={key}" for key in (*keys, f"solvers.program=[./{solver}]")]
        done = mpi.run("mpidata", "run", "heat2d.yaml", *few, cwd=example, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads((example / "runs" / "heat2d" / str(number) / "summary.json").read_text())
        assert found["status"] == "complete" and found["samples"]["received"] == 100 * count
        assert f"{mpi.name}." in done.stdout and "runs without ULFM" in done.stdout


def test_heat_example_completes_with_mpich_5(mpich: Mpi, tmp_path: Path) -> None:
    check_heat(mpich, tmp_path, ["heat2d"], count=2)  # PyPI's MPICH has no Fortran


CARRIED_PROGRAM = """
import os
import mpidata
rank = int(os.environ["PMI_RANK"])
for simulation in mpidata.solver.simulations():
    for step in range(5):
        simulation.put_block("u", [[float(step)] * 6] * 2, (2 * rank, 0))
        simulation.step(step)
"""


def test_two_carriers_leave_cleanly_with_mpich_5(mpich: Mpi, tmp_path: Path) -> None:
    """MPICH 5 does not free a communicator with messages that were not received."""
    (tmp_path / "solver.py").write_text(CARRIED_PROGRAM)
    carried = {"ranks": 2, "launcher": ["mpirun", "-n", "{ranks}"]}
    write_job(tmp_path, groups=2, ranks_per_group=2, carried=carried, program=["python", "solver.py"])
    check_complete(mpich, tmp_path)


@pytest.mark.full
def test_heat_example_completes_with_the_mpis_of_debian(debians: Mpi, tmp_path: Path) -> None:
    check_heat(debians, tmp_path, ["heat2d", "heat2d_f"], count=8)


@pytest.mark.full
def test_fortran_solver_of_the_solver_page_runs(debian_mpich: Mpi, tmp_path: Path) -> None:
    page, readme = ROOT / "docs" / "solver.md", files(ROOT / "README.md")
    for name, text in {"solver.f90": files(page)["solver.f90"], "train.py": readme["train.py"]}.items():
        (tmp_path / name).write_text(text)
    (line,) = [block.text for block in blocks("sh", page=page) if block.name == "mpifort"]
    wrapper = debian_mpich.mpicc.replace("mpicc", "mpifort")
    built = debian_mpich.run("sh", "-euc", line.replace("mpifort ", f"{wrapper} "), cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    (tmp_path / "job.yaml").write_text(readme["job.yaml"])
    few = ["name=job", "parameters.count=2", "solvers.program=[./solver_f]", "solvers.groups=1"]
    done = debian_mpich.run("mpidata", "run", "job.yaml", *(f"--set={key}" for key in few), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary(tmp_path)["samples"]["received"] == 200


@pytest.mark.full
def test_solver_with_mpi_f08_completes(debians: Mpi, tmp_path: Path) -> None:
    wrapper = Path(debians.mpicc.replace("mpicc", "mpifort"))
    before, after = debians.config("fflags", cwd=tmp_path), debians.config("flibs", cwd=tmp_path)
    built = debians.run(wrapper, *before, PROGRAMS / "f08.f90", "-o", "f08", *after, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    write_job(tmp_path, groups=2, ranks_per_group=2, program=["./f08"])
    check_complete(debians, tmp_path)


@pytest.mark.full
def test_spawned_groups_complete_with_mpich_5(mpich: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sim.py").write_text(SIM)
    write_job(tmp_path, groups=3, start="spawn", function="sim:simulate")
    check_complete(mpich, tmp_path)
    log = (tmp_path / "runs" / "job" / "1" / "logs" / "rank-0000-scheduler.log").read_text()
    assert "use TCP" not in log  # MPICH shares memory with spawned ranks


@pytest.mark.full
def test_mpi_without_spawn_support_is_reported(debian_mpich: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sim.py").write_text(SIM)
    write_job(tmp_path, groups=1, start="spawn", function="sim:simulate")
    done = debian_mpich.run("mpidata", "run", "job.yaml", cwd=tmp_path, timeout=60)
    assert done.returncode == 1 and summary(tmp_path)["seconds"] < 20
    assert "MPI cannot spawn it" in done.stderr and "mpidata doctor" in done.stderr


@pytest.mark.full
def test_doctor_passes_with_other_mpis(mpi: Mpi, tmp_path: Path) -> None:
    done = mpi.run("mpidata", "doctor", "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    states = {check["check"]: check["state"] for check in report["checks"]}
    assert done.returncode == 0 and report["ok"], done.stdout
    for check in ("libmpidata", "one MPI", "two ranks", "threads", "on one host"):
        assert states[check] == "ok", done.stdout
    assert states["spawn"] == ("warning" if mpi.kind == "debian-mpich" else "ok")
    assert states["ULFM"] == "warning"
    found = {check["check"]: check["found"] for check in report["checks"]}
    assert found["one MPI"].count(f"{mpi.name}.") == 3


CARRIED = "carried_campaign"  # long, and marked as such
PARTS = [CARRIED, "exactness", "backpressure", "early_stop", "misuse", "heat2d_job", "checkpoint", "give_up"]
PARTS += ["restarts", "cancel", "published", "inference", "inference_leaving", "learner_rank"]
PARTS += ["cpp", "replicas/replicas"]


@pytest.mark.full
@pytest.mark.parametrize("part", PARTS)
def test_job_tests_pass_with_other_mpis(mpi: Mpi, part: str) -> None:
    """The tests that run with Open MPI 5 pass with the Python of the other environment."""
    tests = ROOT / "tests" / "mpi" / Path(part).with_name(f"test_{Path(part).name}.py")
    command = ["python", "-m", "pytest", "-c", ROOT / "pyproject.toml", tests, "-q"]
    chosen = ["-k", "not fortran"] if mpi.kind == "mpich" else []
    chosen += ["-m", "not ulfm and full" if part == CARRIED else "not ulfm and not full"]
    done = mpi.run(*command, *chosen, "-p", "no:cacheprovider", cwd=ROOT / "tests", timeout=1750)
    assert done.returncode == 0, done.stdout[-6000:]
