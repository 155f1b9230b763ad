"""`python -m benchmarks` after SIGINT, SIGTERM and SIGKILL: the same command resumes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import wait_until

from benchmarks.contender import ROOT

# Two contenders replace all others; each measurement is a line in a file. One measurement does not end by itself.
PROGRAM = """
import signal
import sys
from pathlib import Path
from benchmarks import __main__ as program, contender
from benchmarks.contender import Result, run_processes

signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
log, stuck = Path(sys.argv[1]), int(sys.argv[2])

watch = contender._watch
def watched(*arguments):
    (log.parent / "watched").touch()
    watch(*arguments)
contender._watch = watched

class Noting:
    row, about = "mpidata fifo", "a test"
    def __init__(self, name):
        self.name = name
    def missing(self):
        return None
    def measure(self, cell):
        with log.open("a") as file:
            print(self.name, cell.sample_bytes, file=file)
        if len(log.read_text().splitlines()) == stuck:
            run_processes([["sleep", "600"]], cell)
        return Result(100, cell.seconds)

program.stream.describe = lambda: {"cores": "2"}
program.stream.render = lambda output: None
program.contenders = lambda: [Noting("a"), Noting("b")]
sys.exit(program.main(["--rounds", "2", "--sizes", "1024", "8192", "--output", str(log.parent / "out")]))
"""


def start(folder: Path, stuck: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM, str(folder / "log"), str(stuck)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True)


def told(folder: Path) -> list[str]:
    path = folder / "log"
    return path.read_text().splitlines() if path.exists() else []


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, even if the process that has inherited it does not wait for it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_run_that_is_interrupted_resumes(number: signal.Signals, tmp_path: Path) -> None:
    first = start(tmp_path, stuck=6)
    wait_until((tmp_path / "watched").exists, alive=first)
    (child,) = psutil.Process(first.pid).children()
    first.send_signal(number)
    assert first.wait(30) == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}[number]
    if number == signal.SIGKILL:
        child.kill()  # nobody could end it
    wait_until(lambda: has_ended(child))
    contents = json.loads((tmp_path / "out" / "front.json").read_text())
    assert len(contents["measurements"]) == 5 and contents["without"] == ["3 measurements: not made yet"]
    assert start(tmp_path, stuck=0).wait(60) == 0
    again = ["a 1024", "b 1024", "a 8192", "b 8192", "b 1024", "a 1024", "a 1024", "b 8192", "a 8192"]
    assert told(tmp_path) == again  # the sixth again, because it was not measured; the others once
    contents = json.loads((tmp_path / "out" / "front.json").read_text())
    assert len(contents["measurements"]) == 8 and contents["without"] == []
