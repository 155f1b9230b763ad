"""The Makefile and .ci/run: the packages that each target installs, and the environment of the two commands."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(*words: str, cwd: Path = ROOT, path: str = os.environ["PATH"]) -> str:
    done = subprocess.run(["make", *words], cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "target, extras",
    [
        ("demo", {"examples"}),
        ("demo-files", {"examples", "files"}),
        ("docs", {"examples", "docs"}),
        ("test", {"examples", "docs", "test"}),
    ],
)
def test_target_installs_the_required_extras(target: str, extras: set[str], tmp_path: Path) -> None:
    commands = make("-n", target, f"VENV={tmp_path}/venv")
    assert set(re.findall(r"(?:-e '\.\[|tools/extra\.py )(\w+)", commands)) == extras


def test_library_is_rebuilt_after_a_compiler_was_installed(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("make", "sh", "mkdir", "cmp", "mv", "rm"):
        (tools / name).symlink_to(shutil.which(name) or name)
    known = tmp_path / "build" / "compilers"
    make("build/compilers", cwd=tmp_path, path=str(tools))
    assert known.read_text() == ""
    os.utime(known, ns=(0, 0))
    make("build/compilers", cwd=tmp_path, path=str(tools))
    assert known.stat().st_mtime_ns == 0
    (tools / "gfortran").symlink_to("/bin/true")
    make("build/compilers", cwd=tmp_path, path=str(tools))
    assert known.read_text() == f"{tools}/gfortran\n" and known.stat().st_mtime_ns > 0


def test_demo_and_test_run_in_a_copy_and_in_a_bare_environment(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text("demo test:\n\t@echo $@; pwd; env\n")
    given = {
        "LANG": "C.UTF-8",
        "PIP_CERT": "/a cert",
        "https_proxy": "here:1",
        "PYTHONUNBUFFERED": "1",
        "VIRTUAL_ENV": "/",
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **given}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    demo, test = re.findall(r"^(?:demo|test)\n(.*?)(?=^test$|\Z)", done.stdout, re.MULTILINE | re.DOTALL)
    for output in (demo, test):
        folder, *variables = output.splitlines()
        assert folder.startswith(str(tmp_path)) and " " in folder
        told = dict(line.split("=", 1) for line in variables)
        added = {"PWD", "OLDPWD", "SHLVL", "_", "MAKEFLAGS", "MAKELEVEL", "MAKE_TERMOUT", "MAKE_TERMERR", "MFLAGS"}
        assert told.keys() - added == {"PATH", "HOME", "LANG", "PIP_CERT", "https_proxy", "MPIDATA_REQUIRE_ALL"}
        assert told["PIP_CERT"] == "/a cert"
