"""Losses by simulation, of two trainers, also over a resume: losses.csv says what numpy says."""

import csv
import json

import numpy as np
import pytest
from jobs import JobFolder

SIMULATE = """
def simulate(alpha):
    for step in range(10):
        yield {"u": [[1.0 * step] * 6] * 4}
"""

# One that DIES tells of batches until a checkpoint, before that.
TRAIN = """
import json, os, signal, time
import numpy as np
from mpidata.trainer.join import join
from numpy_stream import stream

batches, trainer = stream(5), join()
to_the_end = trainer.drawn > 0 or not DIES
rank = trainer.communicator.rank
log = open(f"told-{rank}.jsonl", "a")

def tell(batch):
    values = np.sin(1.0 + 3.7 * batch["simulation"] + batch["step"]) * 1e-3
    values[batch["simulation"] == 2] = np.nan
    assert trainer.losses.take(batch, values) == 0
    print(json.dumps([batch["simulation"].tolist(), values.tolist()]), file=log, flush=True)

for number, batch in enumerate(batches, 1):
    if to_the_end:
        tell(batch)
    elif number <= 4:
        time.sleep(1.1 * (number == 4))  # then all are told
        tell(batch)
        time.sleep(0.2 * (number == 4))
        if number == 4:
            trainer.library.mpidata_trainer_checkpoint()
    elif (trainer.plan.run / "checkpoints" / "000001").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        time.sleep(0.1)
"""


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.full)])
def test_the_file_agrees_with_numpy(folder: JobFolder, dies: bool) -> None:
    folder.write(sim=SIMULATE, train=TRAIN.replace("DIES", str(dies)))
    folder.job(
        trainers={"ranks": 2, "program": ["python", "train.py"]},
        solvers={"function": "sim:simulate"},
        parameters={"count": 20, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 60},
    )
    result = folder.run()
    assert result.run is not None, result.output
    if dies:
        assert result.status == 1, result.logs()
        with open(result.run / "losses.csv") as file:
            assert sum(int(row["count"]) + int(row["not_finite"]) for row in csv.DictReader(file)) == 2 * 4 * 5
        result = folder.run(command=[*folder.command()[:2], "--resume", str(result.run)])
    assert result.status == 0 and result.run is not None, result.logs()

    losses: dict[int, list[float]] = {}
    excess: dict[int, list[float]] = {}
    for path in folder.path.glob("told-*.jsonl"):
        for simulations, values in map(json.loads, path.read_text().splitlines()):
            good = np.array(values)[np.isfinite(values)]
            for simulation, value in zip(simulations, values, strict=True):
                losses.setdefault(simulation, []).append(value)
                above = max(0.0, (value - good.mean()) / good.std()) if np.isfinite(value) else 0.0
                excess.setdefault(simulation, []).append(above)
    with open(result.run / "losses.csv") as file:
        rows = {int(row["simulation"]): row for row in csv.DictReader(file)}
    assert rows.keys() == losses.keys() and len(rows) > 10
    assert rows.pop(2).items() >= {"count": "0", "mean": "0.0", "not_finite": str(len(losses.pop(2)))}.items()
    for simulation, row in rows.items():
        told = np.array(losses[simulation])
        assert int(row["count"]) == len(told) and row["not_finite"] == "0"
        np.testing.assert_allclose(float(row["mean"]), told.mean(), rtol=1e-12)
        np.testing.assert_allclose(float(row["excess"]), np.mean(excess[simulation]), rtol=1e-9)
        assert float(row["max"]) == told.max() and float(row["last"]) in told
    summary = result.summary["losses"]
    assert summary["simulations"] == len(rows) + 1 and summary["count"] == sum(map(len, losses.values()))
