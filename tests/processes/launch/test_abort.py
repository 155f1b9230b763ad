"""With the library that mpidata-rank preloads into solvers, MPI_Abort, in the end PMIx_Abort, is one death; no MPI."""

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launch_job import build_shim, clean_environment, make_plan

# Replaces Open MPI's: ends the process so that it can be distinguished from the preloaded one.
_PMIX = "#include <unistd.h>\nint PMIx_Abort(int code) { _exit(40 + code); }\n"
# The preloaded library cannot see an MPI that is loaded late, as Python does.
_MPI = "int PMIx_Abort(int, const char *, void *, unsigned long);\nvoid fail(void) { PMIx_Abort(4, 0, 0, 0); }\n"
# Arguments: flags of the page, then the path of a library with `fail`.
_PROGRAM = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const unsigned flags = (unsigned)atoi(argv[1]);
    void (*fail)(void);
    if (pwrite(atoi(getenv("MPIDATA_PULSE")), &flags, sizeof flags, 4) < 0) return 1;
    for (int file = 3; argc > 3 && file < 100; file++) close(file);
    printf("the matrix is singular");
    *(void **)&fail = dlsym(dlopen(argv[2], RTLD_NOW), "fail");
    fail();
    return 0;
}
"""
_FORTRAN = """
program last_words
  use iso_c_binding
  interface
    subroutine fail() bind(c)
    end subroutine
  end interface
  integer :: page
  open(newunit=page, file='/proc/self/fd/' // pulse(), access='stream', action='write', status='old')
  write(page, pos=5) 1_c_int32_t
  close(page)
  write(*, '(a)', advance='no') 'the matrix is singular'
  call fail()
contains
  function pulse() result(fd)
    character(:), allocatable :: fd
    character(100) :: value
    call get_environment_variable('MPIDATA_PULSE', value)
    fd = value(:index(value, ':') - 1)
  end function
end program
"""


class _Built:
    """A mpidata-rank with the library that it preloads, and programs to abort."""

    def __init__(self, folder: Path, cc: str) -> None:
        self.folder = folder
        self.cc = cc
        self.shim = build_shim(folder, cc)
        for name, text in (("pmix.c", _PMIX), ("mpi.c", _MPI), ("program.c", _PROGRAM)):
            (folder / name).write_text(text)
        self.library("libpmix.so.2", "-Wl,-soname,libpmix.so.2", str(folder / "pmix.c"))
        self.mpi = self.library(
            "libmpi.so", str(folder / "mpi.c"), f"-L{folder}", "-l:libpmix.so.2", f"-Wl,-rpath,{folder}"
        )
        self.program = folder / "program"
        self.call(cc, str(folder / "program.c"), "-o", str(self.program), "-ldl")

    def library(self, name: str, *arguments: str) -> Path:
        self.call(self.cc, "-shared", "-fPIC", *arguments, "-o", str(self.folder / name), "-ldl")
        return self.folder / name

    def call(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> _Built:
    return _Built(tmp_path_factory.mktemp("abort"), require("cc"))


def _run(shim: Path, folder: Path, program: list[str], rank: int = 3, **plan: Any) -> tuple[dict[str, Any], str]:
    """Run a program that ends badly; returns its exit note and its log."""
    run = make_plan(folder, {"solver": program, "trainer": program}, **{"fault_tolerance": "ulfm", **plan}).run
    variables = clean_environment(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="7")
    done = subprocess.run(
        [str(shim), str(run)], env=variables, timeout=20, capture_output=True, text=True, start_new_session=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    (log,) = (run / "logs").iterdir()
    return json.loads((run / "exits" / f"rank-{rank:04d}").read_text()) | {"said": done.stderr}, log.read_text()


@pytest.mark.parametrize("wrapped", [False, True])
def test_mpi_abort_of_a_joined_solver_ends_only_that_rank(built: _Built, tmp_path: Path, wrapped: bool) -> None:
    program = [str(built.program), "1", str(built.mpi)]
    if wrapped:  # the page's descriptor is closed, and the shell hides how the program ended
        program = ["sh", "-c", '"$@"; exit 0', "sh", *program, "close"]
    record, log = _run(built.shim, tmp_path, program)
    assert record["abort"] == 4 and (record["exit"], record["signal"]) == (None, None)
    assert (record["joined"], record["told"], record["error"]) == (True, False, None)
    assert "called MPI_Abort with 4: rank 3 (a solver of group 0)" in record["said"]
    assert log.startswith("the matrix is singular")


@pytest.mark.parametrize(
    ("flags", "rank", "plan"), [(0, 3, {}), (1, 1, {}), (1, 3, {"fault_tolerance": "none"})], ids=repr
)
def test_any_other_mpi_abort_ends_the_job(
    built: _Built, tmp_path: Path, flags: int, rank: int, plan: dict[str, str]
) -> None:
    record, _ = _run(built.shim, tmp_path, [str(built.program), str(flags), str(built.mpi)], rank, **plan)
    # MPI ends a solver that has not joined, but the cause is known.
    assert record.get("abort") == (None if flags else 4) and record["exit"] == (44 if flags else None)
    assert record["joined"] is bool(flags)


def test_fortran_output_before_an_mpi_abort_is_in_the_log(
    built: _Built, tmp_path: Path, require: Callable[[str], str]
) -> None:
    (built.folder / "words.f90").write_text(_FORTRAN)
    link = [f"-L{built.folder}", "-lmpi", f"-Wl,-rpath,{built.folder}"]
    built.call(require("gfortran"), "words.f90", "-o", "words", *link)
    record, log = _run(built.shim, tmp_path, [str(built.folder / "words")])
    assert record["abort"] == 4 and log == "the matrix is singular"


def test_mpi_abort_of_a_solver_with_sanitizers_is_recorded(built: _Built, tmp_path: Path) -> None:
    sanitized = str(tmp_path / "sanitized")
    built.call(built.cc, "-fsanitize=address", str(built.folder / "program.c"), "-o", sanitized, "-ldl")
    record, log = _run(built.shim, tmp_path, [sanitized, "1", str(built.mpi)])
    assert record["abort"] == 4 and log == "the matrix is singular"


def _copy(built: _Built, folder: Path, *names: str) -> Path:
    """Copy mpidata-rank and what it preloads into a folder; returns the copy of mpidata-rank."""
    folder.mkdir()
    for name in names:
        shutil.copy(built.folder / name, folder)
    return folder / "mpidata-rank"


def test_library_in_a_path_with_blanks_is_preloaded_through_a_link(built: _Built, tmp_path: Path) -> None:
    shim = _copy(built, tmp_path / "a b", "mpidata-rank", "libmpidata_abort.so")
    (tmp_path / "job").mkdir()
    for _ in range(2):  # the second start finds the link of the first
        record, log = _run(shim, tmp_path / "job", [str(built.program), "1", str(built.mpi)])
        assert record["abort"] == 4 and log.splitlines()[-1] == "the matrix is singular"


@pytest.mark.parametrize(
    ("folder", "names", "work"),
    [("a b", ["mpidata-rank", "libmpidata_abort.so"], "job a"), ("missing", ["mpidata-rank"], "job")],
)
def test_failed_preload_is_reported_in_the_log(
    built: _Built, tmp_path: Path, folder: str, names: list[str], work: str
) -> None:
    shim = _copy(built, tmp_path / folder, *names)
    (tmp_path / work).mkdir()
    record, log = _run(shim, tmp_path / work, [str(built.program), "1", str(built.mpi)])
    assert record["exit"] == 44
    assert log.startswith("mpidata: An MPI_Abort of this solver ends the job: ") and folder in log
