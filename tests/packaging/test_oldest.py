"""The unit tests pass with the oldest versions in pyproject.toml; torch and mpi4py are this environment's."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import tomllib
from installing import ROOT, make_environment, run

# torch is gigabytes, mpi4py is built for this MPI, and a test needs a newer typing-extensions.
KEPT = {"torch", "mpi4py", "typing-extensions"}


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_unit_tests_pass_with_the_oldest_versions(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    allowed = [*project["dependencies"], *project["optional-dependencies"]["files"]]
    lowest = dict(re.match(r"([\w-]+)>=([\d.]+)$", one).groups() for one in allowed)  # type: ignore[union-attr]
    python = make_environment(tmp_path / "oldest")
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for editable in Path(sysconfig.get_path("purelib")).glob("__editable__*mpidata*"):  # also copies its finder
        shutil.copy(editable, site)
    run(python, "-m", "ensurepip")
    versions = [f"{name}=={version}" for name, version in lowest.items() if name not in KEPT]
    run(python, "-m", "pip", "install", "-q", "--ignore-installed", *versions)
    code = "import importlib.metadata as m, sys; print(*(f'{n}=={m.version(n)}' for n in sys.argv[1:]))"
    found = run(python, "-c", code, *(name for name in lowest if name not in KEPT)).split()
    assert [one.partition("==")[0] for one in found] == [one.partition("==")[0] for one in versions]
    assert all(have == want or have.startswith(f"{want}.") for have, want in zip(found, versions, strict=True)), found
    for command in Path(sysconfig.get_path("scripts")).glob("mpi*"):
        if not (python.parent / command.name).exists():
            (python.parent / command.name).symlink_to(command)
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit", "--ignore-glob=*/test_benchmark*"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]
