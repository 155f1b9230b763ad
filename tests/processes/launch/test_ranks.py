"""Finding the ranks of this machine and noticing their ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from waiting import wait_until

from mpidata.launch.watching.processes import processes_of, ranks_of, states_of_children
from mpidata.launch.watching.ranks import LocalRanks


class _Ranks:
    """Processes that look like ranks of a run folder of the test."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, rank: str, *more: str, forks: bool = False) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "MPIDATA_RUN": str(self.run), "PMIX_RANK": rank}
        # The second word of the command is that of mpidata-rank: the run folder.
        fork = "if not os.fork(): print(os.getpid(), flush=True)\n" if forks else ""
        (self.run / "__main__.py").write_text(f"import os, signal; print(flush=True)\n{fork}signal.pause()")
        process = subprocess.Popen([sys.executable, str(self.run), *more], env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        self.processes.append(process)
        return process


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[_Ranks]:
    found = _Ranks(tmp_path)
    yield found
    for process in found.processes:
        process.kill()
        process.communicate()


def test_ranks_are_found_and_their_ends_are_noticed(ranks: _Ranks) -> None:
    first, second = ranks.start("0"), ranks.start("3")
    ranks.start("0", "--group", "7")  # a spawned one
    assert ranks_of(ranks.run) == {0: first.pid, 3: second.pid}
    local = LocalRanks(ranks.run, launcher=1)
    local.find()
    local.look()
    assert len(local) == 2 and local.gone == set()
    second.kill()
    second.wait()
    local.look()
    local.find()
    assert len(local) == 2 and local.gone == {3}
    local.look()
    local.close()


def test_forked_child_before_exec_is_not_a_rank(ranks: _Ranks) -> None:
    first = ranks.start("0", forks=True)
    assert first.stdout is not None
    child = int(first.stdout.readline())
    assert {first.pid, child} <= set(processes_of(ranks.run))
    assert ranks_of(ranks.run) == {0: first.pid}
    os.kill(child, signal.SIGKILL)


def test_rank_that_never_appeared_is_reported_as_missing(ranks: _Ranks) -> None:
    now = time.monotonic()
    times = [now]
    ranks.start("0")
    ranks.start("2")
    local = LocalRanks(ranks.run, os.getpid(), lambda: times[0])
    local.find()
    assert local.missing(3) is None  # the launcher may still start it
    times[0] += 11
    assert local.missing(3) == 1 and local.missing(2) is None
    ranks.start("0", "ssh")  # the launcher has a daemon elsewhere
    assert local.missing(3) is None
    local.close()


def test_launcher_that_does_not_notice_the_end_of_its_children_is_detected(tmp_path: Path) -> None:
    code = "import os, signal; [os.fork() or os._exit(0) for _ in range(2)]; print(flush=True); signal.pause()"
    launcher = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert launcher.stdout is not None and launcher.stdout.readline()
    now = 100.0
    with closing(LocalRanks(tmp_path, launcher.pid, lambda: now)) as ranks:
        wait_until(lambda: states_of_children(launcher.pid) == ["Z", "Z"])
        assert not ranks.are_all_dead()
        now += 6
        assert ranks.are_all_dead()
    launcher.kill()
    launcher.wait()
    with closing(LocalRanks(tmp_path, launcher.pid)) as ranks:
        assert not ranks.are_all_dead()  # a launcher without children, as on a login node
