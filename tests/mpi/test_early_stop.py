"""A trainer that leaves early, or fails, ends the whole job in order and soon."""

import pytest
from jobs import JobFolder, Result

ENDLESS = """
import time

def simulate(alpha):
    for step in range(1000):
        time.sleep(0.005)
        yield {"u": [[alpha] * 6] * 4}
"""

PLAIN = """
import os, sys
import mpidata

rank = int(os.environ["RANK"])
stream = mpidata.MPIStreamDataset(batch_size=4)
for number, batch in enumerate(stream):
    if number == 5:
        {action}
print("after the loop, stopped:", stream.stopped)
"""

DDP = """
import os
import torch
import mpidata

mpidata.init_process_group()
rank = int(os.environ["RANK"])
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(24, 1))
stream = mpidata.MPIStreamDataset(batch_size=4)
for number, batch in enumerate(stream):
    if number == 5:
        {action}
    model(batch["u"].reshape(4, 24)).sum().backward()
torch.distributed.destroy_process_group()
"""


def run(folder: JobFolder, script: str, action: str) -> Result:
    folder.write(sim=ENDLESS, train=script.format(action=action))
    folder.job(
        trainers={"ranks": 2},
        solvers={"function": "sim:simulate", "groups": 2},
        parameters={"count": 50, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=120)
    stop = next(line for line in events(result) if line["event"] == "stop")
    # 7 s by a clock of its own (tests/unit/scheduler); the wall's, on a busy machine, may take longer.
    assert events(result)[-1]["time"] - stop["time"] < 20, result.logs()
    return result


def events(result: Result) -> list[dict[str, object]]:
    import json

    assert result.run is not None, result.output
    return [json.loads(line) for line in (result.run / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("script", [pytest.param(PLAIN, marks=pytest.mark.full), DDP], ids=["plain", "ddp"])
def test_break_on_all_trainers_is_a_success(folder: JobFolder, script: str) -> None:
    result = run(folder, script, "break")
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "stopped" and result.summary["error"] is None
    assert "left its loop early" in result.summary["reason"] or "ended after batch" in result.summary["reason"]
    assert min(result.summary["batches"]["per_trainer"]) == 6


def test_break_on_one_trainer_ends_the_others(folder: JobFolder) -> None:
    result = run(folder, PLAIN, "if rank == 1: break")
    assert result.status == 0, result.logs()
    assert "after the loop, stopped: True" in result.log("trainer", 0) and "after the loop" in result.log("trainer", 1)
    assert result.summary["status"] == "stopped"


def test_break_on_one_trainer_of_ddp_does_not_hang(folder: JobFolder) -> None:
    result = run(folder, DDP, "if rank == 1: break")
    assert result.summary["status"] in ("stopped", "failed"), result.logs()
    assert (result.status == 0) == (result.summary["status"] == "stopped")


@pytest.mark.parametrize("script", [PLAIN, pytest.param(DDP, marks=pytest.mark.full)], ids=["plain", "ddp"])
def test_an_exception_on_one_trainer_fails_the_job(folder: JobFolder, script: str) -> None:
    result = run(folder, script, "if rank == 1: raise ValueError('loss is nan')")
    assert result.status == 1, result.logs()
    assert result.summary["status"] == "failed"
    assert "ValueError: loss is nan (train.py line" in result.summary["error"]


def test_a_look_at_the_first_batch_is_no_stop(folder: JobFolder) -> None:
    folder.write(
        sim="def simulate(alpha):\n    for step in range(10):\n        yield {'u': [[alpha] * 6] * 4}\n",
        train=(
            "import mpidata\nstream = mpidata.MPIStreamDataset(batch_size=4)\n"
            "print('first', next(iter(stream))['u'].shape)\nprint('rest', sum(1 for _ in stream))\n"
        ),
    )
    folder.job(solvers={"function": "sim:simulate"})
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "rest 9" in result.log("trainer")


def test_epochs_of_an_endless_looking_stream(folder: JobFolder) -> None:
    folder.write(
        sim="def simulate(alpha):\n    for step in range(10):\n        yield {'u': [[alpha] * 6] * 4}\n",
        train=(
            "import mpidata, torch\nstream = mpidata.MPIStreamDataset(batch_size=4, batches_per_epoch=4)\n"
            "loader = torch.utils.data.DataLoader(stream, batch_size=None)\n"
            "print('epochs', [sum(1 for _ in loader) for _ in range(4)])\n"
        ),
    )
    folder.job(solvers={"function": "sim:simulate"})
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "epochs [4, 4, 2, 0]" in result.log("trainer")


def test_worker_processes_are_refused(folder: JobFolder) -> None:
    folder.write(
        sim="def simulate(alpha):\n    for step in range(10):\n        yield {'u': [[alpha] * 6] * 4}\n",
        train=(
            "import mpidata, torch\nstream = mpidata.MPIStreamDataset()\n"
            "for batch in torch.utils.data.DataLoader(stream, batch_size=4, num_workers=1): pass\n"
        ),
    )
    folder.job(solvers={"function": "sim:simulate"})
    result = folder.run(timeout=60)
    assert result.status == 1 and "Use num_workers=0" in result.output, result.logs()


def test_a_script_that_fails_after_the_stream_fails_the_job(folder: JobFolder) -> None:
    folder.write(
        sim="def simulate(alpha):\n    for step in range(10):\n        yield {'u': [[alpha] * 6] * 4}\n",
        train=(
            "import sys, time\nfrom mpidata.trainer.join import join\nfrom numpy_stream import stream\n"
            "print('batches', sum(1 for _ in stream(4)))\njoin().close()\ntime.sleep(1)\n"
            "sys.exit('no space for the model')\n"
        ),
    )
    folder.job(solvers={"function": "sim:simulate"})
    result = folder.run(timeout=60)
    assert result.status == 1 and result.summary["status"] == "failed", result.logs()
    assert "exit status 1" in result.summary["error"] and "no space for the model" in result.output
