"""`mpidata run` works in the interactive shell of `srun --pty bash`, which is itself a Slurm step."""

import os
import subprocess

import pytest
from batch import BatchFolder
from jobs import BIN, PROGRAMS, environment, python
from waiting import wait_until


@pytest.mark.parametrize(
    "options", [["-n1", "-c2"], ["-N2", "-n4", "--mpi=pmix"], ["-n1", "-c2", "--mpi=pmi2"]], ids="-".join
)
def test_a_job_runs_in_the_shell_of_srun(folder: BatchFolder, options: list[str]) -> None:
    folder.write(solver="import numpy as np\ndef f(alpha):\n    yield {'u': np.zeros((4, 6))}\n")
    train = python("trainers/drain.py")
    folder.job(
        trainers={"program": train},
        solvers={"function": "solver:f"},
        parameters={"count": 1, "space": {"alpha": [0, 1]}},
    )
    terminal, other = os.openpty()
    variables = {**environment(), **folder.cluster.variables, "PYTHONPATH": str(PROGRAMS)}
    shell = subprocess.Popen(
        ["srun", *options, "--pty", "bash", "--norc"],
        **{"cwd": folder.path, "env": variables, "start_new_session": True},
        **dict.fromkeys(("stdin", "stdout", "stderr"), other),
    )
    os.close(other)
    try:
        prompt = b""
        while not prompt.endswith((b"$ ", b"# ")):
            prompt += os.read(terminal, 1024)
        os.write(terminal, f"'{BIN}/mpidata' run job.yaml >said 2>&1; echo $? >status; exit\n".encode())
        status = folder.path / "status"
        wait_until(lambda: status.exists() and status.read_text().endswith("\n"), 90)
        said = (folder.path / "said").read_text()
        assert status.read_text() == "0\n", said
        assert "run folder" in said
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)
