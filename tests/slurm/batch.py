"""Submits, awaits and inspects jobs for the Slurm tests."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

from cluster import Cluster
from heat2d_job import write_heat2d_job
from jobs import BIN, JobFolder, Result, python
from killing import events_of
from waiting import wait_until

_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


class BatchFolder(JobFolder):
    """A folder with a job file, its programs, and the output of its batch jobs."""

    def __init__(self, path: Path, cluster: Cluster) -> None:
        super().__init__(path)
        self.cluster = cluster

    def heat2d(self, built: Path, count: int, pause: float = 0.0, **keys: object) -> None:
        """Write a job of the heat example whose trainers sleep after each batch of 5 samples."""
        program = python("trainers/census/census_resumed.py", pause)
        write_heat2d_job(
            self, built, count, {"groups": 2, "timeout_s": 30, "start_timeout_s": 30}, program=program, **keys
        )

    def call(self, *command: str, timeout: float = 30) -> "subprocess.CompletedProcess[str]":
        """Run a command as a user of the cluster."""
        return subprocess.run(
            command,
            cwd=self.path,
            env={**self.environment(), **self.cluster.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def submit(self, *arguments: str) -> str:
        """Run `mpidata submit`; return the number of the Slurm job."""
        done = self.call(str(BIN / "mpidata"), "submit", "job.yaml", *arguments)
        assert done.returncode == 0, done.stderr
        match = re.fullmatch(rf"Submitted job as job (\d+)\. Its output: {self.path}/slurm-\1\.out\n", done.stdout)
        assert match, done.stdout
        return match[1]

    def sbatch(self, script: str, *arguments: str) -> str:
        """Submit a script; return the number of the Slurm job."""
        (self.path / "script.sh").write_text(f"#!/bin/bash\n{script}\n")
        done = self.call("sbatch", "--parsable", "--output=slurm-%j.out", *arguments, "script.sh")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def output(self, job: str) -> str:
        path = self.path / f"slurm-{job}.out"
        return path.read_text() if path.exists() else ""

    def state(self, job: str) -> dict[str, str]:
        """Return what Slurm reports about a job."""
        said = self.call("scontrol", "show", "job", "-o", job).stdout.splitlines()
        return dict(re.findall(r"(\w+)=(\S*)", said[0])) if said else {}

    def wait(self, job: str, timeout: float) -> Result:
        """Wait for the end of a Slurm job after all its starts, and check that nothing is left of it."""
        started = time.monotonic()
        state: dict[str, str] = {}

        def has_ended() -> bool:
            state.update(self.state(job))  # nothing if slurmctld is too busy to answer
            return state.get("JobState") in _ENDED

        wait_until(has_ended, timeout, every_s=0.3, told=lambda: f"{state}\n{self._logs(job)}")
        status = int(state["ExitCode"].partition(":")[0])
        assert (status == 0) == (state["JobState"] == "COMPLETED"), state
        result = self.result(status, self.output(job), time.monotonic() - started)
        self.assert_nothing_left(within_s=10)
        return result

    def wait_for_start(self, job: str, number: int = 1, timeout: float = 90) -> None:
        """Wait until all ranks have joined the `number`-th start of the run."""

        def started() -> bool:
            assert self.state(job).get("JobState") not in _ENDED, self._logs(job)
            return sum(event["event"] == "start" for event in events_of(self.path)) >= number

        wait_until(started, timeout, every_s=0.1, told=lambda: self._logs(job))

    def wait_for_checkpoint(self, timeout: float = 60) -> None:
        """Wait until the first run has a checkpoint."""
        wait_until(lambda: list((self.path / "runs" / "job" / "1").glob("checkpoints/[0-9]*[0-9]")), timeout)

    def hosts(self, run: Path) -> dict[str, str]:
        """Return the host of each rank by its name in the logs: `scheduler`, `trainer-0`, `solver-0-1`."""
        found = {}
        for path in sorted(run.glob("logs/rank-*.log")):
            match = re.match(r"mpidata: rank \d+ \(.*\) is on (\S+)\n", path.read_text())
            assert match, path
            found[path.stem[len("rank-0000-") :]] = match[1]
        return found

    def _logs(self, job: str) -> str:
        result = self.result(1, self.output(job), 0)
        return result.logs() if result.run is not None else result.output


def summaries(run: Path) -> list[dict]:
    """Return the summaries of all starts of a run, the last one at the end."""
    before = sorted(run.glob("summary-*.json"), key=lambda path: int(path.stem.partition("-")[2]))
    return [json.loads(path.read_text()) for path in [*before, run / "summary.json"] if os.path.exists(path)]
