"""Only ranks of the program are admitted, not another user, a process from outside, or one rank more."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from carried_job import check, write_job
from jobs import PROGRAMS, JobFolder, ranks_of, variables_of
from waiting import wait_until

Build = Callable[..., Path]
NOBODY = 65534
HELLO = struct.pack("<II", 0x4D504331, 4)  # magic and version: c_api/src/carried/layout.h


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mpidata-test-") as folder:
        os.chmod(folder, 0o755)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


class Running:
    """A job whose only group has a slow program, and what a stranger may know of it."""

    def __init__(self, folder: JobFolder, program: Path) -> None:
        self.folder = folder
        write_job(folder, program, "slow", "9", depth=9, groups=1)
        self._started = time.monotonic()
        self._process = folder.start()
        self.program = wait_until(lambda: self._programs(program), 30, every_s=0.02, alive=self._process)[0]
        maps = Path(f"/proc/{self.program.pid}/maps")  # the carrier sends its memory to a rank that it admits
        wait_until(lambda: "mpidata-carried" in maps.read_text(), every_s=0.02, alive=self._process)
        self.address = variables_of(self.program)["MPIDATA_CARRIER"]

    def _programs(self, program: Path) -> list[psutil.Process]:
        found = []
        for rank in ranks_of(self.folder.path):
            with contextlib.suppress(psutil.NoSuchProcess):  # the process has just ended
                found += [child for child in rank.children() if child.name() == program.name]
        return found

    def finish(self) -> None:
        check(self.folder, self.folder.finish(self._process, 60, self._started))


@pytest.fixture
def running(folder: JobFolder, carried: Build, temporary: Path) -> Running:
    return Running(folder, carried("pattern"))


def attach(address: str, times: int = 1) -> list[str]:
    """Return what mpidata_attach reports in a process that the job has not started."""
    import mpidata

    library = Path(mpidata.__file__).parent / "lib" / "libmpidata_carried.so"
    command = [sys.executable, PROGRAMS / "strangers/attach.py", library, str(times)]
    done = subprocess.run(
        command, env={**os.environ, "MPIDATA_CARRIER": address}, capture_output=True, text=True, timeout=30
    )
    return done.stdout.splitlines()


def test_processes_from_outside_are_refused_and_the_job_completes(running: Running) -> None:
    path = running.address.rpartition(":")[0]
    assert "this process does not belong to the program that the carrier runs now" in attach(f"{path}:{'0' * 31}")[0]
    assert "the program has 1 ranks (solvers.carried.ranks), which have all attached" in attach(running.address)[0]
    assert "cannot connect to" in attach(f"{path}-not-there:1")[0] and "names no carrier" in attach("nonsense")[0]
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as rubbish,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent,
    ):
        silent.connect(path)
        rubbish.connect(path)
        rubbish.settimeout(10)
        rubbish.send(os.urandom(500))
        assert rubbish.recv(10) == b""
        running.finish()


def test_another_user_can_neither_connect_nor_read_memory(running: Running, temporary: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    path = Path(running.address.rpartition(":")[0])
    carrier = running.program.parent()
    assert carrier is not None and carrier.name() == "mpidata-carrier"
    arguments = [str(path), (HELLO + bytes(40)).hex(), str(carrier.pid), str(running.program.pid)]

    def look() -> list[str]:
        # The code is passed as text, because the other user may not be allowed to read the file.
        command = ["/usr/bin/env", "python3", "-c", (PROGRAMS / "strangers/look.py").read_text(), *arguments]
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/", "env": {"PATH": os.defpath}}
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    others = ["memory PermissionError", "mapped PermissionError"] * 2
    assert look() == ["list PermissionError", "greet PermissionError", *others]
    os.chmod(path.parent, 0o755)  # as if the folder did not protect it
    os.chmod(path, 0o777)
    said = look()
    assert said[0].startswith("list [") and said[2:] == others
    assert said[1] in ("greet 0", "greet ConnectionResetError", "greet BrokenPipeError")  # by its number
    os.chmod(path.parent, 0o700)
    running.finish()
