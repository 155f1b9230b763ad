"""Jobs on three hosts, some of which are lost."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from heat2d_job import write_heat2d_job
from hosts import Hosts
from jobs import BIN, JobFolder, Result, environment, named, python
from killing import STEPS, check_exactly_once, wait_for_event
from waiting import wait_until

from mpidata.errors import MpidataError
from mpidata.launch.watching.scale import scale

COUNT = 24
SILENCE_S = 4.0


class HostsJob:
    """The heat example on three hosts: the scheduler and a trainer on node1, a trainer on node2, groups on node3."""

    def __init__(self, hosts: Hosts, path: Path, built: Path, pause_s: float = 0.02, **solvers: object) -> None:
        self.folder = JobFolder(path)
        self._hosts = hosts
        write_heat2d_job(
            self.folder,
            built,
            COUNT,
            {"groups": 2, **solvers},
            program=python("trainers/census/census_resumed.py", pause_s),
            checkpoint={"every_s": 0.5},
            launch={"hosts": ["node1:4", "node2:3", "node3:3"], "host_timeout_s": SILENCE_S},
        )
        job = (path / "job.yaml").read_text()
        (path / "job.yaml").write_text(job.replace("trainers:\n", "trainers:\n  per_node: 1\n"))
        self._process: subprocess.Popen[str] | None = None
        self._started = 0.0

    def start(self, *arguments: str) -> None:
        self._started = time.monotonic()
        command = [str(BIN / "mpidata"), "run", "job.yaml", *arguments]
        self._process = self._hosts.start("node1", command, self.folder.path, environment())

    def finish(self, timeout: float) -> Result:
        assert self._process is not None
        return self.folder.finish(self._process, timeout, self._started)

    def check_complete(self, result: Result) -> None:
        assert result.status == 0, result.logs()
        assert result.summary["status"] == "complete"
        assert result.run is not None
        assert result.summary["samples"]["received"] == COUNT * STEPS
        check_exactly_once(self.folder, result.run, COUNT)

    def check_noticed(self, lost: str) -> None:
        """Check that the loss of a host is noticed in time and the job completes on the others."""
        summaries = "runs/job/1/summary*.json"
        wait_until(
            lambda: list(self.folder.path.glob(summaries)), SILENCE_S + 20, told=lambda: "the loss was not noticed"
        )
        result = self.finish(timeout=90)
        self.check_complete(result)
        assert f"Without {lost}, which cannot be reached." in result.output, result.output
        assert f"Host {lost} is lost" in result.output, result.output
        self.nothing_left_on(*(name for name in self._hosts.names if name != lost))

    def nothing_left_on(self, *names: str) -> None:
        self._hosts.wait_until_empty(*names)
        files = [(name, path) for name in names for path in self._hosts.temporary_files(name)]
        assert not [(name, path) for name, path in files if "torchinductor" not in path], files


@pytest.fixture
def job(hosts: Hosts, tmp_path: Path, built_heat2d: Path) -> Callable[..., HostsJob]:
    def make(**keys: object) -> HostsJob:
        return HostsJob(hosts, tmp_path, built_heat2d, **keys)

    return make


def test_a_rank_that_dies_on_another_host_is_replaced(hosts: Hosts, job: Callable[..., HostsJob]) -> None:
    heat = job(spares=1)
    heat.start()
    wait_for_event(heat.folder.path, "checkpoint")
    victim = named(hosts.processes("node3"), "heat2d")[0]
    victim.send_signal(signal.SIGKILL)
    result = heat.finish(timeout=90)
    heat.check_complete(result)
    assert result.summary["lost_groups"] == 1
    assert "node1: the scheduler, trainer 0" in result.output and "node2: trainer 1" in result.output
    assert "node3: groups 0-2 (3 solvers)" in result.output
    heat.nothing_left_on("node1", "node2", "node3")


@pytest.mark.full
def test_mpidata_scale_changes_the_number_of_groups(hosts: Hosts, job: Callable[..., HostsJob]) -> None:
    heat = job(pause_s=0.1, spares=1)
    heat.start()
    wait_for_event(heat.folder.path, "dispatch")
    run = heat.folder.path / "runs/job/1"  # called in this process, because the job may end before a command starts
    with pytest.raises(MpidataError, match="4 groups would be 2 more, but the job has 1 to spare"):
        scale(run, {"groups": 4})
    assert scale(run, {"groups": 3})[0].startswith("3 groups from now on, there were 2: 1 of the spare ones.")
    assert scale(run, {"groups": 1})
    wait_for_event(heat.folder.path, "rests")
    result = heat.finish(timeout=90)
    heat.check_complete(result)
    heat.nothing_left_on("node1", "node2", "node3")


@pytest.mark.full
def test_network_delay_and_loss_only_slow_the_job(hosts: Hosts, job: Callable[..., HostsJob]) -> None:
    lines = [hosts.spoil(name, delay_ms=5, loss_percent=1) for name in ("node2", "node3")]
    heat = job()
    heat.start()
    result = heat.finish(timeout=120)
    heat.check_complete(result)
    assert result.summary["lost_groups"] == 0 and result.summary["retries"] == []
    for line in lines:
        line.kill()
        assert line.stdout is not None and line.stdout.read().count(b"x") > 5, "the lines have lost nothing"
    heat.nothing_left_on("node1", "node2", "node3")


def test_missing_program_on_one_host_is_reported(hosts: Hosts, job: Callable[..., HostsJob]) -> None:
    hosts.call("node1", "cp", "/bin/true", "/dev/shm/solver")  # a folder that the hosts do not share
    heat = job(program=["/dev/shm/solver"])
    heat.start()
    result = heat.finish(timeout=20)
    assert result.status == 1
    assert "Cannot start '/dev/shm/solver': No such file or directory" in result.output, result.output
    assert f"in {heat.folder.path} on node3. Build it, or correct `program`" in result.output, result.output


@pytest.mark.parametrize(
    ("how", "lost"),
    [
        ("cut", "node2"),  # has a trainer
        pytest.param("cut", "node3", marks=pytest.mark.full),  # has the groups
        pytest.param("power_off", "node2", marks=pytest.mark.full),
        pytest.param("power_off", "node3", marks=pytest.mark.full),
    ],
)
def test_job_completes_without_a_lost_host(hosts: Hosts, job: Callable[..., HostsJob], how: str, lost: str) -> None:
    heat = job()
    heat.start("--restarts", "1")
    wait_for_event(heat.folder.path, "checkpoint")
    getattr(hosts, how)(lost)
    heat.check_noticed(lost)
    if how == "cut":  # its daemon may run until its TCP times out, but the ranks must end
        assert not named(hosts.processes(lost), "mpidata-rank")


@pytest.mark.full
def test_job_completes_if_a_host_is_lost_while_mpirun_sends_to_that_host(
    hosts: Hosts, job: Callable[..., HostsJob]
) -> None:
    heat = job(spares=1)
    heat.start("--restarts", "1")
    wait_for_event(heat.folder.path, "checkpoint")
    hosts.cut("node2")
    named(hosts.processes("node3"), "heat2d")[0].kill()
    heat.check_noticed("node2")
