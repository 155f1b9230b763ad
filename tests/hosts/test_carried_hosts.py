"""A carried program with four ranks on two hosts, each with one carrier of its group."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import carried_job
import psutil
import pytest
import yaml
from hosts import Hosts
from jobs import BIN, JobFolder, Result
from waiting import wait_until

SILENCE_S = 4.0
RANKS = 4

AT_WORK_S = 1.0  # time that the program runs before its host is lost


class CarriedJob:
    """The scheduler and the trainer on node1, one carrier each on node2 and node3, and room for one on node1."""

    def __init__(self, hosts: Hosts, path: Path, program: Path) -> None:
        self.folder, self._hosts, self._program = JobFolder(path), hosts, program
        agent = ["--prtemca", "plm_ssh_agent", str(hosts.agent)]
        options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--map-by", "node"]
        launcher = [str(BIN / "mpirun"), *agent, *options, "-n", "{ranks}", "--host", "{hosts}"]
        keys = {"carried": {"ranks": RANKS, "launcher": launcher}, "ranks_per_group": 2, "groups": 1, "timeout_s": 10}
        carried_job.write_job(self.folder, program, "slow", "9", depth=9, **keys)
        job = yaml.safe_load((path / "job.yaml").read_text())
        job["launch"] = {"hosts": ["node1:3", "node2:1", "node3:1"], "host_timeout_s": SILENCE_S}
        job["trainers"]["per_node"] = 1
        job["checkpoint"] = {"every_s": 0.5}
        (path / "job.yaml").write_text(yaml.safe_dump(job))

    def start(self, *arguments: str) -> None:
        self._started = time.monotonic()
        command = [str(BIN / "mpidata"), "run", "job.yaml", *arguments]
        self._process = self._hosts.start("node1", command, self.folder.path, self.folder.environment())

    def running_on(self, name: str) -> int:
        count = 0
        for process in self._hosts.processes(name):
            with contextlib.suppress(psutil.NoSuchProcess):  # the process has just ended
                count += process.name() == self._program.name
        return count

    def wait_until_it_runs_on(self, **counts: int) -> None:
        def running() -> dict[str, int]:
            return {name: self.running_on(name) for name in counts}

        wait_until(lambda: running() == counts, 30, told=running)

    def finish(self) -> Result:
        result = self.folder.finish(self._process, 120, self._started)
        carried_job.check(self.folder, result)
        return result

    def nothing_left_on(self, *names: str) -> None:
        self._hosts.wait_until_empty(*names)
        files = [path for name in names for path in self._hosts.temporary_files(name)]
        assert not [path for path in files if "torchinductor" not in path], files


@pytest.fixture
def job(hosts: Hosts, tmp_path: Path, carried: Callable[..., Path]) -> Iterator[CarriedJob]:
    yield CarriedJob(hosts, tmp_path, carried("pattern", str(BIN / "mpicc")))


def test_each_host_has_a_carrier_for_the_ranks_on_it(job: CarriedJob) -> None:
    job.start()
    job.wait_until_it_runs_on(node1=0, node2=2, node3=2)
    job.finish()
    job.nothing_left_on("node1", "node2", "node3")


@pytest.mark.full
def test_job_restarts_without_a_lost_host_of_the_program(hosts: Hosts, job: CarriedJob) -> None:
    job.start("--restarts", "1")
    job.wait_until_it_runs_on(node2=2, node3=2)
    time.sleep(AT_WORK_S)
    hosts.cut("node3")
    job.wait_until_it_runs_on(node1=2, node2=2, node3=0)
    result = job.finish()
    assert "Without node3, which cannot be reached." in result.output, result.output
    job.nothing_left_on("node1", "node2")
