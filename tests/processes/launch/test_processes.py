"""Processes of a run are found and ended by their environment, also while they execute another program."""

import ctypes
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from waiting import wait_until

from mpidata.launch.watching import processes

PARENTS = Path(__file__).resolve().parents[3] / "launch" / "parents"
AGAIN = 'exec sh -c "$0" "$0"'


def _sleeper(run: Path) -> "subprocess.Popen[bytes]":
    code = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
    environment = {**os.environ, "MPIDATA_RUN": str(run)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_only_processes_of_the_run_are_ended(tmp_path: Path) -> None:
    mine, other = _sleeper(tmp_path / "1"), _sleeper(tmp_path / "11")
    try:
        assert processes.processes_of(tmp_path / "1") == [mine.pid]
        assert set(processes.end_processes(tmp_path / "1")) == {mine.pid}
        assert mine.wait(5) == -9 and other.poll() is None
        assert processes.processes_of(tmp_path / "1") == []
    finally:
        for process in (mine, other):
            process.kill()
            process.communicate()


@pytest.fixture
def restless(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the run `tmp_path` that replaces its program again and again; Linux often shows no environment."""
    variables = {"PATH": os.defpath, "MPIDATA_RUN": str(tmp_path), "MARK": "1"}
    with subprocess.Popen(["sh", "-c", AGAIN, AGAIN], env=variables) as process:
        try:
            yield process
        finally:
            process.kill()


def test_process_is_found_while_it_executes_another_program(
    tmp_path: Path, restless: "subprocess.Popen[bytes]"
) -> None:
    environ = Path(f"/proc/{restless.pid}/environ")
    wait_until(lambda: environ.read_bytes() == b"", every_s=0)  # else this test tries nothing
    assert all(b"MARK=1" in processes.variables_of(restless.pid) for _ in range(300))
    assert all(processes.processes_of(tmp_path) == [restless.pid] for _ in range(30))


def test_process_that_executes_another_program_is_found_although_this_one_is_stopped_meanwhile(
    restless: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()  # as if this process were stopped for a second between any two looks
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=time.sleep))
    assert all(b"MARK=1" in processes.variables_of(restless.pid) for _ in range(300))


def test_process_without_variables_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], env={}, stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with monkeypatch.context() as context:
            context.setattr(processes.time, "sleep", lambda seconds: pytest.fail("it is waited for"))
            assert processes.variables_of(process.pid) == [b""]
        process.kill()


def test_mpidata_rank_kills_a_marked_process_that_executes_another_program(
    tmp_path: Path, require: Callable[[str], str]
) -> None:
    library = tmp_path / "parents.so"
    sources = [str(PARENTS / name) for name in ("family.c", "process.c")]
    subprocess.run(
        [
            require("cc"),
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-shared",
            "-fPIC",
            *sources,
            "-o",
            str(library),
        ],
        check=True,
    )
    kill_marked = ctypes.CDLL(str(library)).kill_marked
    for number in range(150):
        variables = {"PATH": os.defpath, "MPIDATA_RUN": str(tmp_path), "MARK": str(number)}
        with subprocess.Popen(["sh", "-c", AGAIN, AGAIN], env=variables) as process:
            try:
                time.sleep(number % 7 / 1000)
                found = kill_marked(f"MPIDATA_RUN={tmp_path}".encode(), f"MARK={number}".encode())
                assert found == 1 and process.wait(5) == -9
            finally:
                process.kill()
