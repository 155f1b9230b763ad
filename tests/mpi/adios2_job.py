"""Build and run programs that write with ADIOS2 through mpidata's engine."""

import json
import os
import re
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path

from jobs import PROGRAMS, JobFolder, Result, environment, python
from pages import ROOT, blocks

SOURCE = PROGRAMS / "adios2" / "writes.cpp"
SIMULATIONS = 4
FIELDS = {
    "fields_u": {"shape": [11, 5]},
    "halves": {"shape": [11, 4], "dtype": "int32"},
    "pairs": {"shape": [11], "dtype": "complex64"},
    "part": {"shape": ["rows", 2]},
    "each": {"shape": ["writers"], "dtype": "int64"},
    "energy": {"shape": []},
    "mesh": {"shape": [11], "dtype": "float64", "per": "simulation"},
}
LENGTHS = {"rows": {"at_most": 20}, "writers": {"at_most": 4}}
LINES, XML = (
    block.text for block in blocks("text", page=ROOT / "docs" / "adios2.md")
)  # the lines that build it, the XML file that uses it


def build_for_wheel(folder: Path, compiler: str) -> None:
    """Build the engine (in `engine`), as the page describes, and the program `writes`, for the ADIOS2 of PyPI."""
    spec = find_spec("adios2")
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).parent
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-isystem", str(package / "include")]
    # A Debug build takes a third of the time.
    told = {
        "adios2_DIR": f"{package}/cmake/adios2",
        "CXXFLAGS": shlex.join(strict),
        "CXX": compiler,
        "CMAKE_BUILD_TYPE": "Debug",
    }
    # If the path of mpidata contains blanks, its flags are quoted, as docs/solver.md says.
    lines = re.sub(r"^.*\$\(mpidata config .*$", r'eval "\g<0>"', LINES, flags=re.MULTILINE)
    # CMake cannot look for an MPI in such a path, and this ADIOS2 has none.
    lines = lines.replace("cmake -S", "cmake -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -S") if " " in str(package) else lines
    run("sh", "-euc", lines, cwd=folder, env=environment() | told)
    library = [f"-L{package}", f"-Wl,-rpath,{package}", "-ladios2_cxx", "-ladios2_core"]
    library += ["-Wl,--allow-shlib-undefined"]  # for the libraries beside them, whose names differ in the wheel
    flags = ["-std=c++17", *(flag for flag in strict if flag != "-Wconversion"), "-DADIOS2_HAS_NO_MEMORY_SELECTION"]
    run(compiler, *flags, SOURCE, "-o", folder / "writes", *library)


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def write_job(
    folder: JobFolder,
    program: list[str],
    ranks: int = 1,
    time: str | None = "t",
    launcher: list[str] | str = "auto",
    **more: object,
) -> None:
    """Write a job of a program that is started for each simulation."""
    (folder.path / "adios2.xml").write_text(XML)
    folder.variables["MARKER"] = str(folder.path / "marker")
    carried = {"ranks": ranks, "launcher": launcher, **({"time": time} if time else {})}
    keys = {
        "trainers": {"program": python("adios2/trainer.py", ranks, 0.25 if time else 1.0)},
        "solvers": {"carried": carried, "lifetime": "simulation", "groups": 2, "program": program},
        "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        "lengths": LENGTHS,
        "fields": FIELDS,
    }
    folder.job(**keys | more)


def check(folder: JobFolder, result: Result) -> None:
    """Check that each step arrived once; trainer.py has compared every element."""
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == SIMULATIONS
    seen = json.loads((folder.path / "seen.json").read_text())
    assert sorted(seen) == [[s, step] for s in range(SIMULATIONS) for step in range(3 + s % 3)]


def told(folder: JobFolder, program: list[str], engine: Path) -> subprocess.CompletedProcess[str]:
    """Run the program outside a job."""
    (folder.path / "adios2.xml").write_text(XML)
    variables = {**os.environ, "ADIOS2_PLUGIN_PATH": str(engine)}
    return subprocess.run(program, cwd=folder.path, env=variables, capture_output=True, text=True, timeout=60)
