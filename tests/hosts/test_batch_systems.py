"""The page's scripts for PBS and LSF run on three hosts, with replacements for the systems' commands."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from heat2d_job import write_heat2d_job
from hosts import Hosts
from jobs import JobFolder, environment, named, python
from killing import STEPS, check_exactly_once, wait_for_event
from pages import ROOT, files

COUNT = 24
SCRIPTS = files(ROOT / "docs" / "sites.md")


@pytest.mark.full
@pytest.mark.timeout(400)
@pytest.mark.parametrize("script", ["job.pbs", "job.lsf"])
def test_job_resumes_after_its_time_limit(hosts: Hosts, tmp_path: Path, built_heat2d: Path, script: str) -> None:
    folder, pbs = JobFolder(tmp_path), script == "job.pbs"
    program = python("trainers/census/census_resumed.py", "0.05")
    write_heat2d_job(
        folder, built_heat2d, COUNT, {"groups": 2, "timeout_s": 30, "start_timeout_s": 30}, program=program,
        checkpoint={"every_s": 600}, buffer={"policy": "fifo", "capacity": 500},
    )  # fmt: skip
    (tmp_path / script).write_text(SCRIPTS[script])
    nodes = tmp_path / "nodes"
    nodes.write_text("node2\nnode1\nnode1\nnode1\nnode2\nnode3\nnode3\nnode3\n")
    agent = "pbs_tmrsh" if pbs else "blaunch"
    for name, line in {
        agent: f'exec {hosts.variables["PRTE_MCA_plm_ssh_agent"]} "$@"',
        "qsub": "echo $* >again",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    variables = environment()
    variables |= {"PATH": f"{tmp_path}:{Path(sys.prefix) / 'bin'}:{variables['PATH']}", "LSB_JOBID": "41"}
    variables |= {"PBS_O_WORKDIR": str(tmp_path), "PBS_JOBID": "41.a", "PBS_NODEFILE": str(nodes)}
    variables |= {"LSB_DJOB_HOSTFILE": str(nodes)}

    def start() -> "subprocess.Popen[str]":
        return hosts.start("node1", ["env", "-u", "PRTE_MCA_plm_ssh_agent", "bash", script], tmp_path, variables)

    started, first = time.monotonic(), start()
    wait_for_event(tmp_path, "simulation_complete", timeout_s=90)
    (clock,) = named(hosts.processes("node1"), "timeout")
    clock.send_signal(signal.SIGUSR1)  # it passes the signal on, as at the time limit
    assert folder.finish(first, 100, started).status == 75, folder.result(75, "", 0).logs()
    assert not pbs or (tmp_path / "again").read_text() == "-v name=pbs-41 job.pbs\n"
    variables |= {"PBS_JOBID": "42.a", "name": "pbs-41"}  # as with qsub; LSF keeps the number
    assert folder.finish(start(), 120, started).status == 0, folder.result(0, "", 0).logs()
    result = folder.result(0, (tmp_path / f"{script[-3:]}-41.out").read_text(), 0)
    assert result.run is not None and result.run.name == "1" and "Resuming" in result.output
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == COUNT * STEPS
    assert re.search(r"SIGUSR1: checkpoint 1 of batch \d+ was written", result.output)
    check_exactly_once(folder, result.run, COUNT)
