"""`buffer.pinned`: the memory of the buffer is page-locked for a device, by the stand-in for its driver."""

from pathlib import Path

import pytest
from jobs import DRAIN, PROGRAMS, JobFolder
from test_misuse import assert_failed

TRAIN = """
import os
import torch
from on_device import Device

device = Device(os.environ["STANDIN"])
torch.cuda.is_available, torch.cuda.init, torch.cuda.current_device = lambda: True, lambda: None, lambda: 1
if os.environ.get("FAILS"):
    device.functions.fail(b"cuMemHostRegister", 2)
import mpidata

dataset = mpidata.MPIStreamDataset(batch_size=2)
for batch in torch.utils.data.DataLoader(dataset, batch_size=None):
    print("=>", device.functions.locked(batch["u"].data_ptr()) >= batch["u"].nbytes)
"""


def run(folder: JobFolder, standin: Path, policy: str, fails: str = "") -> None:
    folder.write(train=TRAIN)
    folder.variables = {"STANDIN": str(standin), "PYTHONPATH": str(PROGRAMS), "FAILS": fails, "STEPS": "300"}
    folder.job(
        solvers={"function": "functions.steps:simulate"},
        buffer={"policy": policy, "capacity": 20, "pinned": True},
    )


@pytest.mark.parametrize("policy", ["fifo", pytest.param("firo", marks=pytest.mark.full)])
def test_batches_that_are_not_copied_are_page_locked(folder: JobFolder, standin: Path, policy: str) -> None:
    run(folder, standin, policy)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert ("True" in result.marked()) == (policy == "fifo")  # batches that are copied are in other memory


@pytest.mark.full
def test_failed_page_locking_fails_the_job(folder: JobFolder, standin: Path) -> None:
    run(folder, standin, "fifo", fails="1")
    said = "Page-locking memory of the buffer failed on CUDA: error 2, but the job file has 'buffer.pinned: true'."
    assert_failed(folder.run(timeout=60), said)


def test_pinned_buffer_without_a_device_fails_the_job(folder: JobFolder) -> None:
    folder.job(trainers=DRAIN, solvers={"function": "functions.steps:simulate"}, buffer={"pinned": True})
    assert_failed(folder.run(timeout=60), "'buffer.pinned: true', but torch has no CUDA or ROCm device here.")
