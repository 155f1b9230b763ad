"""CMake alone builds libmpidata, and CMake and pkg-config find it, in the ways in which sites install it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from installing import ROOT, copy_sources, make_environment

# PATH without this Python's environment, in which another MPI would be found first.
PATH = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if not part.startswith(sys.prefix))

C_SOLVER = """
#include <mpi.h>
#include <mpidata.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm group;
    if (mpidata_init(MPI_COMM_WORLD, &group)) return 1;
    mpidata_finalize();
    return MPI_Finalize();
}
"""
FORTRAN_SOLVER = """
program solver
  use mpi
  use mpidata
  implicit none
  integer :: group, ierror
  call MPI_Init(ierror)
  call mpidata_init(MPI_COMM_WORLD, group)
  call mpidata_finalize()
  call MPI_Finalize(ierror)
end program
"""
CARRIED = """
#include <mpidata_carried.h>
int main(void) { return mpidata_attach(); }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES {languages})
{before}
find_package(mpidata 0.1 REQUIRED {components})
{after}
add_executable(solver {source})
target_link_libraries(solver PRIVATE {target})
"""


def call(*command: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {key: os.environ[key] for key in ("HOME", "TMPDIR") if key in os.environ}
    words = [str(word) for word in command]
    told = kept | {"PATH": PATH} | environment
    return subprocess.run(words, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=170)


def run(*command: str | Path, **environment: str) -> str:
    done = call(*command, **environment)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@dataclass(frozen=True)
class Installed:
    """A build and its installation."""

    cmake: str
    build: Path
    prefix: Path
    mpicc: str

    def project(self, folder: Path, source: str, text: str, **words: str) -> "subprocess.CompletedProcess[str]":
        """Configure and build a project that finds mpidata by its prefix; the output has any errors."""
        (folder / source).write_text(text)
        filled = {"languages": "C", "before": "", "components": "", "after": "", "target": "mpidata::mpidata"} | words
        (folder / "CMakeLists.txt").write_text(PROJECT.format(source=source, **filled))
        where = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        if (elsewhere := self.prefix.parent / "all libraries").exists():
            where = f"-Dmpidata_DIR={elsewhere / 'cmake' / 'mpidata'}"
        done = call(self.cmake, "-S", folder, "-B", folder / "build", where)
        return done if done.returncode else call(self.cmake, "--build", folder / "build")


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Callable[..., Installed]:
    """Return a function that builds with MPICH and installs, without Python."""

    def build(*options: str) -> Installed:
        cmake, mpicc, folder = require("cmake"), require("mpicc.mpich"), tmp_path_factory.mktemp("cmake")
        require("gfortran")
        kind = ["-GNinja", f"-DCMAKE_MAKE_PROGRAM={require('ninja')}", "-DCMAKE_BUILD_TYPE=Debug"]
        told = [option.format(folder=folder) for option in (f"-DMPI_C_COMPILER={mpicc}", *options)]
        prefix = folder / "prefix"
        run(cmake, "-S", ROOT / "c_api", "-B", folder / "build", *kind, f"-DCMAKE_INSTALL_PREFIX={prefix}", *told)
        run(cmake, "--build", folder / "build")
        run(cmake, "--install", folder / "build")
        return Installed(cmake, folder / "build", prefix, mpicc)

    return build


@pytest.fixture(scope="module")
def shared(make: Callable[..., Installed]) -> Installed:
    return make()


@pytest.fixture(scope="module")
def static(make: Callable[..., Installed]) -> Installed:
    """Return static libraries in folders outside the prefix, cross-compiled as for another machine."""
    version, file = "MPICH Version: 4.0.2", "/usr/lib/x86_64-linux-gnu/libmpich.so.12"
    return make(
        "-DBUILD_SHARED_LIBS=OFF",
        "-DCMAKE_INSTALL_LIBDIR={folder}/all libraries",
        "-DCMAKE_INSTALL_INCLUDEDIR={folder}/all headers",
        "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DMPIDATA_BUILT_WITH={version}",
        f"-DMPIDATA_MPI_LIBRARY_FILE={file}",
    )


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """Return a build folder of static libraries with the files to install; nothing is compiled."""
    folder = tmp_path_factory.mktemp("configured")
    folders = {"PREFIX": folder / "the prefix", "LIBDIR": folder / "all libraries", "INCLUDEDIR": "all headers"}
    options = [f"-DCMAKE_INSTALL_{name}={path}" for name, path in folders.items()]
    options += [f"-DMPI_C_COMPILER={require('mpicc.mpich')}", "-DBUILD_SHARED_LIBS=OFF", "-DMPIDATA_FORTRAN=OFF"]
    run(require("cmake"), "-S", ROOT / "c_api", "-B", folder / "build", *options)
    return folder / "build"


def check_runs(solver: Path) -> None:
    """Start a solver alone, and check that it reports this."""
    done = subprocess.run([solver], env={"HOME": os.environ["HOME"]}, capture_output=True, text=True, timeout=60)
    assert "started outside a job" in done.stderr, done.stdout + done.stderr


KINDS = ["shared", pytest.param("static", marks=pytest.mark.full)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["C", "CXX", "C Fortran"])
def test_solver_builds_with_cmake_and_runs(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, language: str
) -> None:
    """In Fortran, the component also provides the MPI's own module."""
    installed, fortran = request.getfixturevalue(kind), "Fortran" in language
    source, text = ("solver.f90", FORTRAN_SOLVER) if fortran else ("solver.c" + "pp" * (language == "CXX"), C_SOLVER)
    words = {"components": "COMPONENTS fortran", "target": "mpidata::fortran"} if fortran else {}
    done = installed.project(tmp_path, source, text, languages=language, **words)
    assert done.returncode == 0, done.stdout
    check_runs(tmp_path / "build" / "solver")
    linked = run("ldd", tmp_path / "build" / "solver")
    assert "libmpich" in linked and "libmpi.so" not in linked and ("libmpidata" in linked) == (kind == "shared")


@pytest.mark.parametrize("kind", KINDS)
def test_carried_program_builds_with_cmake(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    words = {"components": "COMPONENTS carried", "target": "mpidata::carried"}
    done = request.getfixturevalue(kind).project(tmp_path, "program.c", CARRIED, **words)
    assert done.returncode == 0, done.stdout
    assert "libmp" not in run("ldd", tmp_path / "build" / "solver").replace("libmpidata_carried.so.0", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("package", ["mpidata", "mpidata_carried"])
def test_programs_build_with_pkg_config(
    request: pytest.FixtureRequest, tmp_path: Path, require: Callable[[str], str], kind: str, package: str
) -> None:
    installed = request.getfixturevalue(kind)
    (folder,) = {file.parent for file in installed.prefix.parent.rglob("mpidata.pc") if "build" not in str(file)}
    flags = shlex.split(run(require("pkg-config"), "--cflags", "--libs", package, PKG_CONFIG_PATH=str(folder)))
    (tmp_path / "program.c").write_text(C_SOLVER if package == "mpidata" else CARRIED)
    compiler = installed.mpicc if package == "mpidata" else require("cc")
    run(compiler, tmp_path / "program.c", *flags, "-o", tmp_path / "program")
    if package == "mpidata":
        check_runs(tmp_path / "program")


@pytest.mark.parametrize("package", ["mpidata", "mpidata_carried"])
def test_pkg_config_supports_static_libraries_in_folders_with_blanks(
    configured: Path, require: Callable[[str], str], package: str
) -> None:
    """The flags suffice to link without `--static`, so users need not know how the library was built."""
    told = run(require("pkg-config"), "--cflags", "--libs", package, PKG_CONFIG_PATH=str(configured))
    needed = ["-lmpidata", "-lpthread", "-lm"] if package == "mpidata" else ["-lmpidata_carried", "-lm"]
    folders = [f"-I{configured.parent}/the prefix/all headers", f"-L{configured.parent}/all libraries"]
    assert shlex.split(told) == [*folders, *needed]


def without_blanks(mpicc: str) -> None:
    if " " in mpicc:
        pytest.xfail("FindMPI cannot take apart flags with blanks in them")


REFUSED = {
    "another MPI": (
        {"before": "find_package(MPI REQUIRED COMPONENTS C)"},
        "mpidata was built with another MPI than this project uses for C",
    ),
    "no language for its component": (
        {"components": "COMPONENTS fortran", "target": "mpidata::fortran"},
        "component fortran needs the language Fortran",
    ),
    "no C": ({"languages": "Fortran"}, "mpidata needs the language C or CXX"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unsuitable_projects_are_refused(
    shared: Installed, tmp_path: Path, require: Callable[[str], str], case: str
) -> None:
    """A project is refused with a message of mpidata before anything is built."""
    words, sentence = REFUSED[case]
    if case == "another MPI":
        without_blanks(require("mpicc"))
        words = {"before": f"set(MPI_C_COMPILER {require('mpicc')})\n{words['before']}"}
    done = shared.project(tmp_path, "solver.c", C_SOLVER, **words)
    assert done.returncode != 0 and sentence in re.sub(r"\s+", " ", done.stdout), done.stdout


def test_a_project_whose_compiler_is_another_mpis_wrapper_is_refused(
    shared: Installed, tmp_path: Path, require: Callable[[str], str]
) -> None:
    without_blanks(require("mpicc"))
    before = f"set(CMAKE_C_COMPILER {require('mpicc')})\nenable_language(C)"
    done = shared.project(tmp_path, "solver.c", C_SOLVER, languages="NONE", before=before)
    assert done.returncode != 0 and "built with another MPI" in re.sub(r"\s+", " ", done.stdout), done.stdout


NOT_FOUND = """
if(mpidata_fortran_FOUND OR NOT mpidata_carried_FOUND)
  message(FATAL_ERROR "fortran: ${mpidata_fortran_FOUND}, carried: ${mpidata_carried_FOUND}")
endif()
"""


def test_missing_optional_component_is_not_found(shared: Installed, tmp_path: Path) -> None:
    components = "COMPONENTS carried OPTIONAL_COMPONENTS fortran"
    done = shared.project(tmp_path, "solver.c", C_SOLVER, components=components, after=NOT_FOUND)
    assert done.returncode == 0, done.stdout


def test_a_project_with_the_same_mpi_is_not_refused(shared: Installed, tmp_path: Path) -> None:
    before = f"set(MPI_C_COMPILER {shared.mpicc})\nfind_package(MPI REQUIRED COMPONENTS C)"
    done = shared.project(tmp_path, "solver.c", C_SOLVER, before=before)
    assert done.returncode == 0, done.stdout


def test_libraries_name_no_system_folders_in_their_rpath(shared: Installed) -> None:
    for name in ("lib/libmpidata.so", "bin/mpidata-carrier"):
        assert not re.search("R(UN)?PATH", run("readelf", "-d", shared.prefix / name))
    assert "-rpath" in (shared.prefix / "lib" / "pkgconfig" / "mpidata.pc").read_text()


@pytest.mark.full
def test_mpidata_rank_finds_its_library_in_an_absolute_folder(static: Installed) -> None:
    told = run("strings", "-a", static.prefix / "bin" / "mpidata-rank")
    assert f"{static.prefix.parent}/all libraries/libmpidata_abort.so" in told


def test_installation_has_a_licence_and_can_be_uninstalled(shared: Installed, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    shutil.copytree(shared.build, tmp_path / "build", symlinks=True)
    run(shared.cmake, "--install", tmp_path / "build", "--prefix", prefix)
    assert (prefix / "share" / "mpidata" / "LICENSE").read_text().startswith("BSD 3-Clause License")
    (prefix / "lib" / "other.so").touch()
    run(shared.cmake, "--build", tmp_path / "build", "--target", "uninstall")
    assert [str(file.relative_to(prefix)) for file in prefix.rglob("*") if not file.is_dir()] == ["lib/other.so"]
    assert not list(prefix.rglob("mpidata"))


def test_cross_build_reports_the_missing_options(tmp_path: Path, require: Callable[[str], str]) -> None:
    words = [f"-DMPI_C_COMPILER={require('mpicc.mpich')}", "-DCMAKE_SYSTEM_NAME=Linux"]
    done = call(require("cmake"), "-S", ROOT / "c_api", "-B", tmp_path, *words)
    assert done.returncode != 0 and "-DMPIDATA_BUILT_WITH=<what MPI_Get_library_version says there>" in done.stdout


PIP = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--ignore-installed", "--no-index", "-q", "."]


@pytest.mark.full
def test_python_package_installs_on_top_of_an_installed_library(shared: Installed, tmp_path: Path) -> None:
    """Nothing is built, and all compiled parts come from the installed library."""
    (tmp_path / "sources").mkdir()
    sources, python = copy_sources(tmp_path / "sources"), make_environment(tmp_path / "venv")
    library = shared.prefix / "lib" / "libmpidata.so"
    wrong = {"none.so": "which is not a file", str(shared.build / "libmpidata.so"): "was not installed by CMake"}
    for path, why in wrong.items():
        done = call("sh", "-c", f"cd {sources} && {python} {' '.join(PIP)}", MPIDATA_LIBRARY=path)
        assert done.returncode != 0 and why in done.stdout, done.stdout
    run("sh", "-c", f"cd {sources} && {python} {' '.join(PIP)}", MPIDATA_LIBRARY=str(library))
    (package,) = (tmp_path / "venv").rglob("site-packages/mpidata")
    assert not [part for part in ("lib", "bin", "include") if (package / part).exists()]
    config = [python.parent / "mpidata", "config"]
    assert f"-L{shared.prefix}/lib" in run(*config, "--cflags", "--libs").split()
    assert f"{shared.prefix}/share/mpidata/mpidata_carried.c" in run(*config, "--csource").split()
    code = (
        "from mpidata.native import build_flags, constants, loading;"
        "print(loading.find(), build_flags.rank_program(), build_flags.carrier_program(), constants.END)"
    )
    found = run(python, "-I", "-c", code).split()[:3]
    parts = ("lib/libmpidata.so.0", "bin/mpidata-rank", "bin/mpidata-carrier")
    assert found == [str(shared.prefix / part) for part in parts]
    (package / "share" / "mpidata" / "site.json").write_text('{"build": "/gone/build.json"}')
    assert "The libmpidata that this mpidata was installed on is gone" in call(python, "-I", "-c", code).stdout
