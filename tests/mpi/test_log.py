"""`log`: every reported value, with the batch it is of, from a running job."""

import json
from collections import Counter

from jobs import JobFolder
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TRAIN = """
import mpidata
stream = mpidata.MPIStreamDataset(batch_size=2)
for batch, _ in enumerate(stream, start=1):
    stream.report(number=batch, half=batch / 2)
    stream.report(number=-batch)
"""
SOLVER = """
import numpy as np
def simulate(alpha):
    for _ in range(100):
        yield {"u": np.zeros((4, 6), np.float32)}
"""
TRACKER = """
import json
class Tracker:
    def open(self, run, job):
        self.file = open(run / "curves", "w")
        self.trainers = job["trainers"]["ranks"]
    def write(self, time, batch, values):
        print(json.dumps([batch, values]), file=self.file)
        raise ValueError("no network")
    def close(self, status):
        print(json.dumps([status, self.trainers]), file=self.file, flush=True)
"""


def test_every_reported_value_is_logged_with_its_batch(folder: JobFolder) -> None:
    folder.write(train=TRAIN, solver=SOLVER, tracker=TRACKER)
    folder.job(
        trainers={"ranks": 2},
        solvers={"groups": 2, "function": "solver:simulate"},
        log=["tensorboard", "tracker:Tracker"],
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.run is not None and result.output.count("no network") == 1
    drawn = Counter[int]()
    for batches in result.summary["batches"]["per_trainer"]:
        drawn.update(range(1, batches + 1))
    *lines, last = [json.loads(line) for line in (result.run / "curves").read_text().splitlines()]
    assert last == ["complete", 2]
    told = Counter((batch, name, value) for batch, values in lines for name, value in values.items())
    expected = Counter[tuple[int, str, float]]()
    for batch, times in drawn.items():
        for name, value in (("number", batch), ("number", -batch), ("half", batch / 2)):
            expected[batch, name, value] = times
    assert told == expected and sum(told.values()) > 500
    found = EventAccumulator(str(result.run / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    values = Counter((each.step, name, each.value) for name in ("number", "half") for each in found.Scalars(name))
    assert values == expected
