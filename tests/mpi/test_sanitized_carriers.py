"""Carriers and the library of their programs under the sanitizers, also when programs die."""

import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import carried_campaign
import carried_job
import pytest
import test_inference_carried as asking
from jobs import BIN, PROGRAMS, JobFolder, environment
from sanitized import LIBRARIES, compile_c, flags, objects

ROOT = Path(__file__).parents[2]
SANITIZER = "address,undefined"


def run(command: list[object]) -> str:
    done = subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """Build the carrier, and programs that contain the one file of the library; returns their folder."""
    folder = tmp_path_factory.mktemp("sanitized")
    sources = [path for name in ("carrier", "parents") for path in (ROOT / "launch" / name).glob("*.c")]
    sources += [f"-I{ROOT / 'launch/parents'}", *objects(SANITIZER, tmp_path_factory)]
    compile_c(SANITIZER, *sources, "-o", folder / "mpidata-carrier", *LIBRARIES)
    library = shlex.split(run([BIN / "mpidata", "config", "--csource"]))
    mpicc = require("mpicc.mpich")
    for name, compiler in ((name, [mpicc, "-DWITH_MPI"]) for name in ("pattern", "sized-mpich", "asks")):
        source = PROGRAMS / "solvers" / f"{name.partition('-')[0]}.c"
        run([*compiler, *flags(SANITIZER), "-DCARRIED", source, "-o", folder / name, *library])
    run([mpicc, "-shared", "-fPIC", PROGRAMS / "preloads/kill_switch.c", "-o", folder / "switch-mpich.so", "-ldl"])
    return folder


@pytest.fixture
def sanitized(folder: JobFolder, built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JobFolder:
    folder.write(sitecustomize="import preloads.other_carrier\n")
    folder.variables["CARRIER"] = str(built / "mpidata-carrier")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0:halt_on_error=1:verify_asan_link_order=0")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("carriers", [2, 1])
def test_a_job_is_clean(sanitized: JobFolder, built: Path, carriers: int) -> None:
    keys = {"carried": {"ranks": 3}, "ranks_per_group": carriers}
    carried_job.write_job(sanitized, built / "pattern", "copy", **keys)
    result = sanitized.run()
    carried_job.check(sanitized, result)
    assert str(built) in (result.run / "private" / "plan").read_text()
    assert "runtime error" not in result.logs() and "AddressSanitizer" not in result.logs()


@pytest.mark.full
@pytest.mark.parametrize("what", ["", "inference", "program"])
def test_questions_are_clean(sanitized: JobFolder, built: Path, what: str) -> None:
    """This includes questions of a killed program and to a killed inference rank."""
    asking.run_with_death(sanitized, built / "asks", what, signal.SIGKILL, 3)
    logs = "".join(path.read_text() for path in sanitized.path.glob("runs/*/*/logs/*"))
    assert "runtime error" not in logs and "AddressSanitizer" not in logs


@pytest.mark.full
def test_deaths_are_clean(sanitized: JobFolder, built: Path) -> None:
    seed = next(
        seed for seed in range(100) if (one := carried_campaign.draw(seed)).mpi == "mpich" and one.carriers == 2
    )
    print(carried_campaign.run_draw(sanitized, built, seed))
    logs = "".join(path.read_text() for path in sanitized.path.glob("runs/*/*/logs/*"))
    assert "runtime error" not in logs and "AddressSanitizer" not in logs
