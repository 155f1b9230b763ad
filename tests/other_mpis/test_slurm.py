"""Every template of `mpidata submit` works with MPICH 5 and Debian's MPICH 4.0 and Open MPI 4.1, on a real Slurm."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch import BatchFolder
from cluster import Cluster
from example_copy import copy_example
from heat2d_job import write_heat2d_job
from jobs import python
from killing import STEPS, check_exactly_once
from mpis import Mpi

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

COUNT = 20


class MpiFolder(BatchFolder):
    """A folder with a job file of the heat example, submitted from an environment with a different MPI."""

    def __init__(self, path: Path, cluster: Cluster, mpi: Mpi) -> None:
        super().__init__(path, cluster)
        self.mpi = mpi

    def call(self, *command: str, timeout: float = 30) -> "subprocess.CompletedProcess[str]":
        words = [str(self.mpi.bin / "mpidata") if Path(command[0]).name == "mpidata" else command[0], *command[1:]]
        variables = {**self.mpi.environment, **self.cluster.variables}
        return subprocess.run(words, cwd=self.path, env=variables, capture_output=True, text=True, timeout=timeout)

    def write(self, template: str, pause: float = 0.0) -> None:
        """Build the example and write its job file."""
        example = copy_example("heat2d", self.path / "built")
        made = self.mpi.run("make", "heat2d", cwd=example)
        assert made.returncode == 0, made.stdout + made.stderr
        write_heat2d_job(
            self,
            example,
            COUNT,
            {"groups": 2, "timeout_s": 30, "program": ["./heat2d"]},
            program=python("trainers/census/census_resumed.py", pause),
            checkpoint={"every_s": 2.0, "within_s": 20.0},
            slurm={"template": template, "time": "10", "signal_s": 60}
            if template == "preemptible"
            else {"template": template},
        )

    def check_whole(self, job: str, starts: int, timeout: float) -> None:
        result = self.wait(job, timeout)
        assert result.status == 0 and result.summary["status"] == "complete", result.logs()
        assert result.summary["samples"]["received"] == COUNT * STEPS
        check_exactly_once(self, result.run, COUNT)
        assert int(self.state(job)["Restarts"]) == starts - 1
        assert self.mpi.name in result.output


@pytest.fixture
def folder(cluster: Cluster, mpi: Mpi, tmp_path: Path) -> Iterator[MpiFolder]:
    yield MpiFolder(tmp_path, cluster, mpi)
    cluster.cancel_all()


@pytest.mark.parametrize("template", ["homogeneous", "heterogeneous", "preemptible"])
def test_each_template_completes(folder: MpiFolder, template: str) -> None:
    folder.write(template)
    nodes = 2 if template == "heterogeneous" else 4  # nodes of the trainers if heterogeneous
    job = folder.submit("--set", "trainers.per_node=1", "--set", f"slurm.nodes={nodes}")
    folder.check_whole(job, starts=1, timeout=200)


def test_preempted_job_resumes(folder: MpiFolder) -> None:
    folder.write("preemptible", pause=0.05)
    job = folder.submit()
    folder.wait_for_start(job)
    folder.wait_for_checkpoint()
    folder.sbatch("sleep 3", "--partition=urgent", "--nodes=8", "--exclusive")
    folder.check_whole(job, starts=2, timeout=300)
