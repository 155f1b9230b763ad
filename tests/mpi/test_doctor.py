"""`mpidata doctor` on this machine, and the notice of a job about a slow transport."""

import json
import os
import subprocess

import pytest
from jobs import BIN, DRAIN, JobFolder


def test_doctor_reports_a_working_installation(folder: JobFolder) -> None:
    folder.variables = {"STEPS": "1"}
    folder.job(trainers=DRAIN, solvers={"function": "functions.steps:simulate"}, launch={"hosts": ["localhost:4"]})
    command = [str(BIN / "mpidata"), "doctor", "job.yaml", "--json"]
    done = subprocess.run(
        command, cwd=folder.path, env=folder.environment(), capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    found = {check["check"]: check for check in report["checks"]}
    assert report["ok"]
    nodes = ("all nodes", "environment of all nodes", "folders of all nodes", "MPI on all nodes", "slots")
    for name in ("libmpidata", "one MPI", "two ranks", "threads", "ULFM", "spawn", "on one host", "memory", *nodes):
        assert found[name]["state"] == "ok", found[name]
    assert "shared memory" in found["on one host"]["found"] and "MPI_THREAD_MULTIPLE" in found["threads"]["found"]
    for process in os.popen("ps -eo args").read().splitlines():
        assert "mpidata.doctor.ranks" not in process or str(BIN) not in process


@pytest.mark.parametrize("slow", [pytest.param(False, marks=pytest.mark.full), True])
def test_slow_transport_is_reported_once(folder: JobFolder, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    if slow:
        monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    folder.variables = {"STEPS": "1"}
    folder.job(trainers=DRAIN, solvers={"function": "functions.steps:simulate"})
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.log("scheduler").count("do not share memory") == slow
