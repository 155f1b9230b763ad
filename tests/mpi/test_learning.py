"""A sampler of the user's own, which is told of the losses, moves the simulations of a job to where these are large."""

import csv

import numpy as np
import pytest
from jobs import JobFolder

SAMPLER = """
import numpy as np

class Nearby:
    def __init__(self, space, seed):
        self.random, self.best, self.most = np.random.default_rng(seed), None, -1.0
    def observe(self, simulations, parameters, losses):
        at = losses["mean"].argmax()
        if losses["mean"][at] > self.most:
            self.most, self.best = losses["mean"][at], parameters[at]
    def sample(self, count):
        if self.best is None:
            return self.random.random((count, 1))
        rows = self.best + 0.1 * self.random.standard_normal((count, 1))
        return rows.clip(0.0, 1.0), ["near"] * count, [-1] * count
"""

SIMULATE = """
import time

def simulate(alpha):
    for step in range(2):
        time.sleep(0.03)
        yield {"u": [[alpha] * 6] * 4}
"""

TRAIN = """
import numpy as np
from mpidata.trainer.join import join
from numpy_stream import stream

batches, seen = stream(2), {}
for batch in batches:
    alpha = batch["parameters"][:, 0]
    assert (batch["u"] == alpha.astype("float32").reshape(2, 1, 1)).all()
    seen |= dict(zip(batch["simulation"].tolist(), alpha.tolist()))
    join().losses.take(batch, alpha)
np.save("seen.npy", np.array(sorted(seen.items())))
"""


def test_simulations_go_where_the_loss_is_large(folder: JobFolder) -> None:
    folder.write(sim=SIMULATE, train=TRAIN, nearby=SAMPLER)
    folder.job(
        solvers={"function": "sim:simulate", "groups": 2},
        parameters={"count": 80, "sampler": "nearby:Nearby", "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 2},
    )
    result = folder.run()
    assert result.status == 0 and result.run is not None, result.logs()
    assert result.summary["simulations"]["complete"] == 82
    with open(result.run / "parameters.csv") as file:
        rows = {int(row["simulation"]): row for row in csv.DictReader(file)}
    assert sorted(rows) == list(range(82)) and rows[80]["rule"] == rows[81]["rule"] == "validation"
    seen = dict(np.load(folder.path / "seen.npy").tolist())
    assert seen == {float(number): float(rows[number]["alpha"]) for number in range(80)}
    last = [rows[number] for number in range(60, 80)]
    assert all(row["rule"] == "near" for row in last) and sum(float(row["alpha"]) for row in last) / 20 > 0.9


# The first start dies behind a checkpoint, when more was drawn; the second one goes on to the end.
DIES = """
import os, signal, sys, time
from mpidata.trainer.join import join
from numpy_stream import stream

batches, trainer = stream(2), join()
resumed = trainer.drawn
log = open("seen.txt", "a")
for number, batch in enumerate(batches, start=resumed + 1):
    for simulation, alpha in zip(batch["simulation"].tolist(), batch["parameters"][:, 0].tolist()):
        print(simulation, repr(alpha), file=log, flush=True)
    trainer.losses.take(batch, batch["parameters"][:, 0] + 0.1)
    if number == 40 and not resumed:
        trainer.library.mpidata_trainer_checkpoint()
    if not resumed and (trainer.plan.run / "checkpoints" / "000001").exists():
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["breed", "power"])
def test_what_was_drawn_is_final_over_a_resume(folder: JobFolder, sampler: str) -> None:
    folder.write(sim=SIMULATE, train=DIES)
    folder.job(
        solvers={"function": "sim:simulate", "groups": 2},
        parameters={"count": 120, "sampler": sampler, "space": {"alpha": [0.0, 1.0]}},
    )
    first = folder.run()
    assert first.status == 1 and first.run is not None, first.logs()
    drawn = (first.run / "parameters.csv").read_text()
    result = folder.run(command=[*folder.command()[:2], "--resume", str(first.run)])
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 120
    with open(first.run / "parameters.csv") as file:
        rows = {int(row["simulation"]): row for row in csv.DictReader(file)}
    assert (first.run / "parameters.csv").read_text().startswith(drawn) and sorted(rows) == list(range(120))
    assert len({row["alpha"] for row in rows.values()}) == 120 and 40 < drawn.count("\n") < 110
    for line in (folder.path / "seen.txt").read_text().splitlines():
        simulation, alpha = line.split()
        assert rows[int(simulation)]["alpha"] == alpha
    rules = [row["rule"] for row in rows.values()]
    assert {"breed": "bred", "power": "power"}[sampler] in rules[60:]
