"""The site that `make docs` builds, and the pages and pictures that scripts make for it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from c_headers import declarations
from pages import ROOT

from mpidata.native.constants import table

HEADER = ROOT / "c_api" / "include" / "mpidata.h"
MODULE = ROOT / "fortran_api" / "mpidata.f90"


def output(*command: str | Path, timeout: float = 60) -> str:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def constants(*groups: str) -> list[tuple[str, str]]:
    return [(f"MPIDATA_{row.name.upper()}", str(row.number)) for group in groups for row in table()[group]]


def test_header_page_lists_all_calls_and_constants() -> None:
    page, header = output("docs/header.py", HEADER), HEADER.read_text()
    calls = [name for name, declared in declarations().items() if "mpidata.h" in declared.headers]
    assert len(calls) > 10
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == calls
    assert re.findall(r"^\| `(MPIDATA_\w+)` \| (\d+) \|", page, re.MULTILINE) == constants("status", "dtype")
    assert page.count(" (in): ") + page.count(" (out): ") == header.count("@param[")
    assert "@param" not in page and "*/" not in page
    assert "if (mpidata_init(MPI_COMM_WORLD, &group))" in page  # as code


def test_fortran_page_lists_all_calls_and_constants() -> None:
    page, module = output("docs/fortran.py", MODULE), MODULE.read_text()
    calls = re.findall(r"\bmpidata_\w+", " ".join(re.findall(r"^ *public :: (.*)$", module, re.MULTILINE)))
    assert len(calls) > 10
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == calls
    found = re.findall(r"public :: (MPIDATA_\w+) = (\d+)", module)
    assert set(found) <= set(constants("status", "number"))
    assert re.findall(r"^\| `(MPIDATA_\w+)` \| (\d+) \| \S", page, re.MULTILINE) == found
    listed = {"put": ["field", "values", "start", "at"], "put_indices": ["values", "at"], "next": ["simulation"]}
    listed["init"], listed["published"] = ["world", "group"], ["name", "values"]
    listed["named"], listed["device_stream"] = ["values"], ["stream"]
    for one, arguments in listed.items():
        text = page.split(f"### `mpidata_{one}`")[1].split("###")[0]
        assert re.findall(r"^- `(\w+)`: \S", text, re.MULTILINE) == arguments
    assert "class(*), intent(in) :: time\n" in page and "!>" not in page and "!<" not in page
    assert page.count("\n- `") == sum(map(len, listed.values())) + len(re.findall(r"intent.* !< ", module))
    assert "\nprogram solver\n" in page  # as code


def test_picture_of_the_rooms_matches_the_imports(tmp_path: Path) -> None:
    output("docs/rooms.py", tmp_path / "rooms.svg")
    drawn, kept = (tmp_path / "rooms.svg").read_text(), (ROOT / "docs" / "rooms.svg").read_text()
    for room in ("mpidata/config", "launch/starting", "wire"):
        assert f">{room}</text>" in drawn
    assert drawn == kept, "python docs/rooms.py draws it again"


def test_the_python_page_imports_without_mpi() -> None:
    names = re.findall(r"auto(?:class|function):: mpidata\.(\w+)", (ROOT / "docs" / "python.rst").read_text())
    used = "; ".join(f"mpidata.{name}" for name in names)
    code = f"import sys, mpidata, mpidata.solver; {used}; print(sorted({{*mpidata.__all__}} - {{*{names!r}}}))"
    assert output("-c", f"{code}; assert 'mpi4py.MPI' not in sys.modules").strip() == "['__version__', 'solver']"


@pytest.mark.full
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    options = ["-q", "-n", "-W", "--keep-going", "-c", "docs", "-b", "html", "-d", tmp_path / "doctrees"]
    output("-m", "sphinx", *options, ".", tmp_path / "site", timeout=300)
    for page in ("index.html", "README.html", "docs/internals.html", "searchindex.js"):
        assert (tmp_path / "site" / page).stat().st_size > 100
    for page in ("c-header.html", "fortran.html"):
        assert "mpidata_put" in (tmp_path / "site" / "build" / "pages" / page).read_text()
