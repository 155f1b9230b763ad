"""No file depends on itself through others, no room depends on a role, and no folder has too many files."""

import ast
import importlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest

from mpidata.native.build_flags import build_facts

ROOT = Path(__file__).parents[2]
C_API = ROOT / "c_api" / "src"
RANK = ROOT / "launch" / "rank"
CARRIER = ROOT / "launch" / "carrier"
MOST_FILES = 15
MOST_LINES = {".py": 400, ".c": 600, ".h": 600}
ROLES = {"solver", "trainer", "scheduler", "loader"}

Arrows = dict[str, set[str]]


def circle(arrows: Arrows) -> list[str]:
    """Return one cycle of the arrows, with its first name repeated at the end, or [] if there is none."""
    done: set[str] = set()

    def walk(path: list[str]) -> list[str]:
        for name in sorted(arrows.get(path[-1], ())):
            if name in path:
                return [*path[path.index(name) :], name]
            if name not in done and (found := walk([*path, name])):
                return found
        done.add(path[-1])
        return []

    return next((found for name in sorted(arrows) if (found := walk([name]))), [])


# -- C: a .c and its .h count as one file -----------------------------------------------------------------------------


def c_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.[ch]"))


def includes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in c_files(folder):
        for name in re.findall(r'^ *# *include *["<](.+\.h)[">]', path.read_text(), re.MULTILINE):
            for header in (path.parent / name, folder / name):
                if header.exists() and header.resolve().is_relative_to(folder):
                    yield from_top(folder, path), from_top(folder, header.resolve())
                    break


def from_top(folder: Path, path: Path) -> str:
    return str(path.relative_to(folder).with_suffix(""))


def newest_build() -> Path:
    """Return the build folder of `make setup`; another test may be building for another MPI beside it."""
    mpicc = build_facts()["mpicc"]
    caches = [
        path for path in (ROOT / "build").glob("temp.*/native-*/CMakeCache.txt") if f"={mpicc}\n" in path.read_text()
    ]
    assert caches, f"No build for {mpicc} in build/. Run `make setup`."
    return max(caches, key=lambda cache: cache.stat().st_mtime).parent


def symbols(folder: Path) -> Iterator[tuple[str, str]]:
    """Return pairs of a file and the file whose symbol it uses, from the objects of the last `make setup`."""
    built = [str(path) for path in newest_build().rglob("*.c.o")]
    objects = {}
    for path in folder.rglob("*.c"):
        name = path.relative_to(folder).with_suffix("")
        found = [place for place in built if place.endswith(f"{folder.name}/{name}.c.o")]
        assert found, f"There is no object of {path.relative_to(ROOT)}. Run `make setup`."
        # Other objects come from moved sources, or from libmpidata_carried, which has only parts of each file.
        objects[max(found, key=lambda place: ("_carried" not in place, os.path.getmtime(place)))] = str(name)
    listed = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    needed, defined = [], {}
    for line in listed.splitlines():
        file, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            needed.append((objects[file], symbol))
        elif kind.isupper():
            defined[symbol] = objects[file]
    assert len(defined) > len(objects) > 3
    return ((user, defined[symbol]) for user, symbol in needed if symbol in defined)


def grouped(pairs: Iterable[tuple[str, str]]) -> Arrows:
    arrows: Arrows = {}
    for user, used in pairs:
        if user != used:
            arrows.setdefault(user, set()).add(used)
    return arrows


@pytest.mark.parametrize("folder", [C_API, RANK, CARRIER])
def test_no_dependency_cycle_in_c(folder: Path) -> None:
    arrows = grouped([*includes(folder), *symbols(folder)])
    assert len(arrows) > 2
    assert not circle(arrows), "Files that need one another: " + " -> ".join(circle(arrows))


def test_no_room_includes_a_role() -> None:
    found = {(user, used) for user, used in includes(C_API) if used.split("/")[0] in ROLES - {user.split("/")[0]}}
    assert not found, f"The header of a role is included by others: {found}"


# -- Python -----------------------------------------------------------------------------------------------------------


def modules() -> dict[str, Path]:
    found = {}
    for folder, package in (("mpidata", "mpidata"), ("launch", "mpidata.launch")):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


class Imports(ast.NodeVisitor):
    """Collects the imports of a module, also those in functions, except those for annotations."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = set(known)
        self.found: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found |= {alias.name for alias in node.names} & self.known

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, "an import is relative"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            self.found |= {inner if inner in self.known else f"{node.module}"} & self.known


def imports_in_python() -> Arrows:
    paths = modules()
    arrows: Arrows = {}
    for name, path in paths.items():
        imports = Imports(paths)
        imports.visit(ast.parse(path.read_text()))
        arrows[name] = imports.found - {name}
    return arrows


def test_no_import_cycle_in_python() -> None:
    arrows = imports_in_python()
    assert sum(map(len, arrows.values())) > 200
    assert not circle(arrows), "Modules that import one another: " + " -> ".join(circle(arrows))


def test_loaders_import_no_modules_of_trainers() -> None:
    arrows, needed = imports_in_python(), {"mpidata.loader"}
    while more := {used for name in needed for used in arrows[name]} - needed:
        needed |= more
    assert "mpidata.loaders.serve" in needed
    rooms = {name.split(".")[1] for name in needed if "." in name}
    assert not rooms & {"datasets", "trainer", "solver", "scheduler"}


@pytest.mark.parametrize("language", ["python", "c"])
def test_no_dependency_cycle_between_rooms(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    arrows: Arrows = getattr(importlib.import_module("rooms"), f"{language}_rooms")()
    assert len(arrows) > 10
    assert not circle(arrows), "Rooms that need one another: " + " -> ".join(circle(arrows))


# -- folders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["mpidata", "launch", "c_api/src"])
def test_no_folder_is_too_full(top: str) -> None:
    for folder in [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]:
        files = [path for path in folder.iterdir() if path.suffix in (".py", ".c", ".h")]
        assert len(files) <= MOST_FILES, f"{folder} has {len(files)} files side by side."


@pytest.mark.parametrize(("top", "suffix"), [("mpidata", ".py"), *product(("launch", "c_api/src"), MOST_LINES)])
def test_no_file_is_too_long(top: str, suffix: str) -> None:
    for path in (ROOT / top).rglob(f"*{suffix}"):
        lines = len(path.read_text().splitlines())
        assert lines <= MOST_LINES[suffix], f"{path} has {lines} lines."


def test_includes_are_found_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    for name in ("room/a", "room/b", "c"):
        (tmp_path / f"{name}.h").write_text(
            '#include "b.h"\n#  include <room/a.h>\n#include "../c.h"\n#include <mpi.h>\n'
        )
    found = {(user, used) for user, used in includes(tmp_path) if user == "room/a"}
    assert found == {("room/a", "room/b"), ("room/a", "room/a"), ("room/a", "c")}


def test_cycles_are_found() -> None:
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == ["b", "c", "d", "b"]
