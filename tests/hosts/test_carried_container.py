"""Carried programs run with a different libc in their own root, PID, IPC and network namespaces, as in a container."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import carried_job
import pytest
from hosts import missing
from jobs import BIN, DRAIN, PROGRAMS, JobFolder, Result

ENTER = """#!/bin/sh
# The folder of the socket, and that of the simulation, are all that the program sees of this machine.
exec unshare --mount --pid --ipc --net --fork --kill-child sh -c '
    mkdir -p "ROOT$TMPDIR" ROOT/work && mount --bind "$TMPDIR" "ROOT$TMPDIR" && mount --bind "$PWD" ROOT/work &&
    exec chroot ROOT /NAME "$@"' sh "$@"
"""


class Container:
    """A root folder with musl as its libc, and programs."""

    def __init__(self, folder: JobFolder, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._compiler = folder, require("musl-gcc")
        self._root = folder.path / "root"
        (self._root / "lib").mkdir(parents=True)
        self.temporary = Path(tempfile.mkdtemp(prefix="mpidata-test-"))  # socket names must be short
        monkeypatch.setenv("TMPDIR", str(self.temporary))

    def build(self, name: str, *flags: str) -> Path:
        """Compile a program of the tests into the root; return a script that runs it there."""
        source, program = PROGRAMS / "solvers" / f"{name}.c", self._root / name
        command = [self._compiler, "-O1", *flags[:1], source, "-o", program, *flags[1:]]
        subprocess.run(command, check=True)
        told = subprocess.run(["readelf", "-l", self._root / name], capture_output=True, text=True, check=True).stdout
        loader = told.partition("interpreter: ")[2].partition("]")[0]
        assert "musl" in loader, told
        shutil.copy(Path(loader).resolve(), self._root / loader[1:])
        enter = self.folder.path / "enter.sh"
        enter.write_text(ENTER.replace("ROOT", str(self._root)).replace("NAME", name))
        enter.chmod(0o755)
        return enter

    def run(self) -> Result:
        result = self.folder.run()
        assert list(self.temporary.iterdir()) == []
        return result


@pytest.fixture
def container(tmp_path: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    made = Container(JobFolder(tmp_path), require, monkeypatch)
    yield made
    shutil.rmtree(made.temporary)


def test_a_program_streams_through_the_library(container: Container) -> None:
    told = subprocess.run([BIN / "mpidata", "config", "--csource"], capture_output=True, text=True, check=True)
    program = container.build("pattern", "-DCARRIED", *shlex.split(told.stdout))
    carried_job.write_job(container.folder, program, "copy", "9", depth=9)
    carried_job.check(container.folder, container.run())


@pytest.mark.full
def test_a_program_streams_through_files(container: Container) -> None:
    program = container.build("writes_npy")
    folder = container.folder
    (folder.path / "case").mkdir()
    (folder.path / "case" / "input.txt").write_text("{{alpha}}")
    folder.job(
        trainers=DRAIN,
        solvers={
            "groups": 2,
            "carried": {},
            "lifetime": "simulation",
            "program": [str(program), "/work"],
            "case": {"folder": "case", "fill": ["input.txt"]},
            "output": {"files": "u_*.npy"},
        },
    )
    result = container.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["samples"]["received"] == 48
