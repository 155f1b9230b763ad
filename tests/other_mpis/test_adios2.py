"""Programs that write with Debian 13's ADIOS2 and Open MPI, in a chroot, stream if only their XML file is changed."""

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from adios2_job import FIELDS, SOURCE, check, run, write_job
from hosts import missing
from jobs import JobFolder, config
from test_misuse import assert_failed

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [
    *("g++", "gfortran", "cmake", "make", "libopenmpi-dev", "openmpi-bin"),
    *("libadios2-mpi-c++11-dev", "libadios2-mpi-core-dev", "libadios2-mpi-fortran-dev"),
]
INNER = FIELDS | {"inner": {"shape": [11, 5]}}
# The only files of this machine that the program sees are the folders of the socket and of the job. Arguments: the
# number of ranks, then assignments and the program.
ENTER = """#!/bin/sh
exec unshare --mount sh -c '
    for folder in "$TMPDIR" "JOB" /proc /sys /dev; do
        mkdir -p "ROOT$folder" && mount --rbind "$folder" "ROOT$folder" || exit 1
    done
    ranks=$1 && shift
    exec chroot ROOT mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$@"' sh "$@"
"""
BUILD = """
cmake -S adios2 -B engine -DCMAKE_BUILD_TYPE=Debug -DMPIDATA_CARRIED_SOURCE=/mpidata/mpidata_carried.c \\
    -DMPIDATA_INCLUDE=/mpidata/include -DCMAKE_CXX_FLAGS='-Wall -Wextra -Wno-unused-parameter -Werror'
cmake --build engine
mpicxx -std=c++17 -DADIOS2_USE_MPI -I/usr/include/adios2/build/mpi writes.cpp -o writes \\
    -ladios2_mpi_cxx11_mpi -ladios2_mpi_cxx11 -ladios2_mpi_core_mpi -ladios2_mpi_core
mpifort -I/usr/include/adios2/fortran writes.f90 -o writes_f -ladios2_mpi_fortran_mpi -ladios2_mpi_fortran
"""


@pytest.fixture(scope="module")
def trixie() -> Path:
    """Return a chroot with the engine in /mpidata/engine and the program /mpidata/writes."""
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    root = ROOT / "build" / "chroots" / "trixie-adios2"
    root.parent.mkdir(parents=True, exist_ok=True)
    with root.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["sh", ROOT / "tools/make-chroot.sh", "trixie", root, *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        prefix, inside = Path(config("--prefix")[0]), root / "mpidata"
        shutil.rmtree(inside, ignore_errors=True)
        shutil.copytree(prefix / "share/mpidata", inside)
        shutil.copytree(prefix / "include", inside / "include")
        for suffix in (".cpp", ".f90"):
            shutil.copy(SOURCE.with_suffix(suffix), inside)
        run("chroot", root, "env", "TMPDIR=/tmp", "sh", "-euc", f"cd /mpidata\n{BUILD}")
    return root


@pytest.fixture
def inside(tmp_path: Path, trixie: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobFolder]:
    folder, temporary = JobFolder(tmp_path), Path(tempfile.mkdtemp(prefix="mpidata-test-"))
    monkeypatch.setenv("TMPDIR", str(temporary))  # socket names must be short
    (tmp_path / "enter.sh").write_text(ENTER.replace("ROOT", str(trixie)).replace("JOB", str(tmp_path)))
    (tmp_path / "enter.sh").chmod(0o755)
    folder.variables["ADIOS2_PLUGIN_PATH"] = "/mpidata/engine"
    yield folder
    folder.end()
    assert list(temporary.iterdir()) == []
    temporary.rmdir()


def write(folder: JobFolder, ranks: int, how: str, name: str = "writes", **more: object) -> None:
    program = ["env", f"/mpidata/{name}", str(folder.path / "adios2.xml"), how]
    write_job(folder, program, ranks, launcher=["./enter.sh", "{ranks}"], **{"fields": INNER, **more})


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_element_of_uneven_blocks_is_received(inside: JobFolder, ranks: int) -> None:
    write(inside, ranks, "plain")
    check(inside, inside.run(timeout=300))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_step_is_received_once_if_a_rank_is_killed(inside: JobFolder, ranks: int) -> None:
    write(inside, ranks, "dies")
    result = inside.run(timeout=300)
    check(inside, result)
    assert [entry["simulation"] for entry in result.summary["retries"]] == [1]


def test_dimensions_of_fortran_are_in_the_opposite_order(inside: JobFolder) -> None:
    write(inside, 2, "plain", "writes_f", fields={"fields_u": FIELDS["fields_u"]}, lengths={})
    check(inside, inside.run(timeout=300))


def test_missing_time_of_the_first_rank_ends_the_job(inside: JobFolder) -> None:
    write(inside, 2, "no time")
    assert_failed(inside.run(timeout=300), "The variable 't' was not put")
