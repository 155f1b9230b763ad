"""The flags that `mpidata config` prints, for a made-up installation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mpidata.errors import LibraryError
from mpidata.native import build_flags
from mpidata.native.installation import folders_of, read_facts


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build_flags, "folders", lambda: folders_of(tmp_path / "share" / "mpidata"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpidata.so").touch()
    (tmp_path / "share" / "mpidata").mkdir(parents=True)
    record(tmp_path, fortran_compiler="/usr/bin/gfortran")
    return tmp_path


def record(prefix: Path, fortran_compiler: str) -> None:
    """Write what CMake writes."""
    known = {
        "version": "1.2.3",
        "mpi": "Some MPI 4.5",
        "mpicc": "/mpi/bin/mpicc",
        "mpi_library": "mpi",
        "mpi_library_dir": "/mpi/lib",
    }
    text = json.dumps(known | {"fortran_compiler": fortran_compiler})
    (prefix / "share" / "mpidata" / "build.json").write_text(text)


def test_c_flags_name_the_installed_paths_and_library(prefix: Path) -> None:
    line = build_flags.flags_line(["cflags", "libs"])
    assert line == f"-I{prefix}/include -L{prefix}/lib -Wl,-rpath,{prefix}/lib -lmpidata"


def test_fortran_library_is_named_before_its_dependencies(prefix: Path) -> None:
    assert build_flags.flags("fflags") == [f"-I{prefix}/include"]
    libraries = [flag for flag in build_flags.flags("flibs") if flag.startswith("-l")]
    assert libraries == ["-lmpidata_fortran", "-lmpidata", "-lmpi"]
    assert {"-L/mpi/lib", "-Wl,-rpath,/mpi/lib"} <= set(build_flags.flags("flibs"))


def test_fortran_flags_without_a_module_compile_its_source(prefix: Path) -> None:
    record(prefix, fortran_compiler="")
    assert build_flags.flags("fflags") == [f"{prefix}/share/mpidata/mpidata.f90"]
    assert "-lmpidata_fortran" not in build_flags.flags("flibs")


def test_every_known_kind_has_flags_and_others_raise(prefix: Path) -> None:
    for kind in build_flags.KINDS:
        assert build_flags.flags(kind)
    with pytest.raises(KeyError):
        build_flags.flags("cxxflags")


def test_a_path_with_blanks_is_quoted(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blank = prefix / "a b"
    prefix_files = blank / "share" / "mpidata"
    prefix_files.mkdir(parents=True)
    record(blank, fortran_compiler="")
    (blank / "lib").mkdir()
    (blank / "lib" / "libmpidata.so").touch()
    monkeypatch.setattr(build_flags, "folders", lambda: folders_of(blank / "share" / "mpidata"))
    assert build_flags.flags_line(["cflags"]) == f"'-I{blank}/include'"


def test_missing_library_and_rank_program_are_reported(prefix: Path) -> None:
    with pytest.raises(LibraryError, match="mpidata-rank is missing.*pip install"):
        build_flags.rank_program()
    (prefix / "lib" / "libmpidata.so").unlink()
    with pytest.raises(LibraryError, match="libmpidata.so is missing"):
        build_flags.flags("libs")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.symlink_to(path.name),
    ],
)
def test_unreadable_facts_are_reported(prefix: Path, damage: Callable[[Path], object]) -> None:
    facts = prefix / "share" / "mpidata" / "build.json"
    facts.unlink()
    damage(facts)
    with pytest.raises(LibraryError, match=rf"Cannot read {facts}: .*\. Make it readable, or reinstall mpidata\.$"):
        read_facts(facts)
