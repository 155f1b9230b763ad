"""The symbols that libmpidata exports: two lists of names, each exactly those in use."""

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from c_headers import declarations

from mpidata import __version__
from mpidata.errors import LibraryError
from mpidata.native import library, loading

ROOT = Path(__file__).parents[3]
ADDED = {  # since version 0.1
    *("mpidata_infer", "mpidata_infer_begin", "mpidata_infer_wait"),
    *("mpidata_map_create", "mpidata_map_free", "mpidata_put_indices", "mpidata_put_mapped", "mpidata_put_strided"),
    *("mpidata_refresh", "mpidata_published"),
    *("mpidata_device_stream", "mpidata_misuse", "mpidata_put_strided_rows"),
}
HPP = (ROOT / "c_api/include/mpidata.hpp").read_text()
OF_CPLUSPLUS = set(re.findall(r'^extern "C" \w+ (mpidata_\w+)\(', HPP, re.MULTILINE))  # in addition to the header's


def nodes_of(nm: str, path: Path) -> dict[str, set[str]]:
    """Return the names of a library by their version node."""
    command = [nm, "-D", "--defined-only", str(path)]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    nodes: dict[str, set[str]] = {}
    for line in lines:
        _, kind, name = line.split()
        if kind != "A":  # A: the version node itself
            name, _, node = name.partition("@@")
            nodes.setdefault(node, set()).add(name)
    return nodes


@pytest.fixture(scope="module")
def nodes(require: Callable[[str], str]) -> dict[str, set[str]]:
    return nodes_of(require("nm"), loading.find())


def functions_of(*headers: str) -> set[str]:
    return {name for name, declared in declarations().items() if declared.headers & set(headers)}


def test_library_exports_its_header_and_calls_of_python_and_fortran(nodes: dict[str, set[str]]) -> None:
    public = functions_of("mpidata.h") | OF_CPLUSPLUS
    fortran = re.findall(r"name='(mpidata_\w+)'", (ROOT / "fortran_api/mpidata.f90").read_text())
    assert len(public) > 10 and len(fortran) > 10
    private = {*library.SIGNATURES, *fortran} - public
    assert nodes == {"MPIDATA_0": public - ADDED, "MPIDATA_0_2": ADDED, "MPIDATA_PRIVATE": private}


def test_library_without_mpi_exports_its_header_and_private_calls(require: Callable[[str], str]) -> None:
    nodes = nodes_of(require("nm"), loading.find().with_name("libmpidata_carried.so.0"))
    public = functions_of("mpidata.h", "mpidata_carried.h") - {"mpidata_init"} | OF_CPLUSPLUS
    python = ("python/constants.h", "python/routing.h")
    private = functions_of("carried/carried.h", "calls/bindings.h", "system/available_memory.h", *python)
    private -= OF_CPLUSPLUS
    assert len(public) > 10 and len(private) > 2
    first = {"MPIDATA_CARRIED_0": public - ADDED, "MPIDATA_CARRIED_0_2": ADDED}
    assert nodes == first | {"MPIDATA_CARRIED_PRIVATE": private}
    assert set(library.CARRIED) == public - {"mpidata_put_strided_rows"} | private  # which only mpidata.hpp calls


def test_soname_contains_the_interface_version(require: Callable[[str], str]) -> None:
    told = subprocess.run([require("readelf"), "-d", loading.find()], stdout=subprocess.PIPE, text=True, check=True)
    assert "Library soname: [libmpidata.so.0]" in told.stdout
    assert loading.find().with_name("libmpidata.so").resolve() == loading.find().resolve()


@pytest.mark.parametrize(
    ("missing", "version", "why"),
    [("", b"0.0.9", "it is 0.0.9"), ("mpidata_version", b"", "it has no function mpidata_version")],
)
def test_a_library_of_another_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, missing: str, version: bytes, why: str
) -> None:
    class Other:
        def __getattr__(self, name: str) -> Callable[[], bytes]:
            if name == missing:
                raise AttributeError(name)
            return type("Function", (), {"__call__": lambda _: version})()

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Other())
    said = rf"is not libmpidata {re.escape(__version__)}, .*: {why}\. Unset MPIDATA_LIBRARY .* `pip"
    with pytest.raises(LibraryError, match=said):
        loading.load.__wrapped__()
