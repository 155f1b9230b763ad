"""What a launcher's end means if a rank ended with it or before it."""

import signal
import sys
from pathlib import Path

import pytest
import waiting
from ended_run import EndedRun

from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.supervise import supervise

# A launcher of one rank, which looks like mpidata-rank; it ends in another way each time.
_LAUNCHER = """
import os, signal, subprocess, sys, time
from waiting import wait_until, watched_by
run, end = sys.argv[1:]
rank = subprocess.Popen([sys.executable, run], env={**os.environ, "PMIX_RANK": "0"})
wait_until(lambda: watched_by(os.getppid()))
open(f"{run}/events.jsonl", "w").write("start")  # all have joined
time.sleep(1)  # nothing shows that the supervisor has read it
rank.kill()
rank.wait()
if end == "told":
    note = '{"rank": 1, "exit": null, "signal": 15, "told": true, "error": null, "joined": true}'
    open(f"{run}/exits/rank-0001", "w").write(note)
if end == "later":
    wait_until(lambda: os.path.exists(f"{run}/over"))
if end == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
WAITING = str(Path(waiting.__file__).parent)


@pytest.fixture
def case(tmp_path: Path) -> EndedRun:
    return EndedRun(tmp_path)


@pytest.mark.parametrize(
    "end, status, vanished",
    [("at once", 0, 0), ("later", 0, 0), ("told", 0, None), ("killed", -signal.SIGKILL, None)],
)
def test_vanished_rank_is_detected_at_the_end_of_the_launcher(
    case: EndedRun, end: str, status: int, vanished: int | None
) -> None:
    (Path(case.run.path) / "__main__.py").write_text("import signal; signal.pause()")
    command = [sys.executable, "-c", _LAUNCHER, str(case.run.path), end]
    with Signals() as signals:
        ended = supervise(case.attempt, command, {"PYTHONPATH": WAITING}, signals, lambda: None)
    assert (ended.status, ended.vanished, ended.ended_ranks) == (status, vanished, end == "told")
