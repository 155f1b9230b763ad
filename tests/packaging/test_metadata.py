"""Licence, citation and metadata are in the sdist; test_install.py looks into the wheel."""

import email
import subprocess
import sys
import tarfile
from pathlib import Path

import mpidata

ROOT = Path(__file__).parents[2]
IN_SDIST = ["LICENSE", "CITATION.cff", "CHANGELOG.md", "README.md", "PKG-INFO", "c_api/mpidata.map", "setup.py"]
IN_SDIST += ["c_api/CMakeLists.txt", "fortran_api/mpidata.f90", "launch/rank/watch.c"]
IN_SDIST += ["launch/carrier/ranks.c", "launch/parents/fill.c", "mpidata/py.typed"]


def test_the_sdist_has_licence_citation_and_metadata(tmp_path: Path) -> None:
    code = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if not name.startswith(("tests/", "benchmarks/", "docs/", "examples/")) and (ROOT / name).is_file():
            (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tree" / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=tmp_path / "tree", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = f"mpidata-{mpidata.__version__}"
    with tarfile.open(tmp_path / f"{folder}.tar.gz") as archive:
        inside = archive.getnames()
        assert [name for name in IN_SDIST if f"{folder}/{name}" not in inside] == []
        packed = archive.extractfile(f"{folder}/PKG-INFO")
        assert packed is not None
        told = email.message_from_bytes(packed.read())
    assert (told["Name"], told["Version"], told["License-Expression"]) == (
        "mpidata",
        mpidata.__version__,
        "BSD-3-Clause",
    )
    assert told["License-File"] == "LICENSE" and told["Author"] == "the mpidata authors"
    assert told["Summary"] and told["Keywords"] and told["Requires-Python"] == ">=3.10"
    assert str(told.get_payload()).startswith("# mpidata")
