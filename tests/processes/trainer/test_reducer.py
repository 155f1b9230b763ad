"""mpidata.DistributedDataParallel in a job with 'trainers.elastic' gives the gradients of torch's class."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpidata.launch.starting.command import mpirun_options

PROGRAM = Path(__file__).with_name("reduced.py")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full), pytest.param(2, marks=pytest.mark.full)])
def test_gradients_match_ddp_on_three_ranks(tmp_path: Path, require: Callable[[str], str], seed: int) -> None:
    command = [
        require("mpirun"),
        "-n",
        "3",
        *mpirun_options(ulfm=True),
        sys.executable,
        PROGRAM,
        str(seed),
        tmp_path,
    ]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GLOO_SOCKET_IFNAME": "lo"}
    root["PYTHONPATH"] = str(PROGRAM.parents[2] / "mpi/programs/startup")
    done = subprocess.run(command, env={**os.environ, **root}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count("is done") == 3, f"{done.stdout}\n{done.stderr}"
