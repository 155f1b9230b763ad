"""Trainers that accelerate takes for the only ones get an error."""

import subprocess
import sys

import pytest

CHECK = """
import os
from accelerate import Accelerator
from mpidata.errors import StreamError
from mpidata.trainer.frameworks.processes import check_processes
check_processes(2)  # nothing is set up
Accelerator()
check_processes(1)
try:
    check_processes(2)
except StreamError as error:
    print(error)
"""


@pytest.mark.parametrize("alone", [True, False])
def test_only_processes_that_accelerate_treats_as_single_are_refused(alone: bool) -> None:
    command = [sys.executable, "-c", CHECK]
    environment = {"PATH": "", "HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    if not alone:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
        command += [sys.executable, "-c", CHECK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert ("Give Accelerator(cpu=True)" in done.stdout) == alone, done.stdout
