"""mpidata.LocalSGD: with an average after each step it is DistributedDataParallel, with an outer optimizer DiLoCo."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpidata.launch.starting.command import mpirun_options

PROGRAM = Path(__file__).with_name("averaged.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.full)])
def test_local_sgd_matches_ddp_and_its_formulas(tmp_path: Path, require: Callable[[str], str], ranks: int) -> None:
    options = mpirun_options(ulfm=True)
    command = [require("mpirun"), "-n", str(ranks), *options, sys.executable, PROGRAM, tmp_path]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GLOO_SOCKET_IFNAME": "lo"}
    root["PYTHONPATH"] = str(PROGRAM.parents[2] / "mpi/programs/startup")
    done = subprocess.run(command, env={**os.environ, **root}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count("is done") == ranks, f"{done.stdout}\n{done.stderr}"
