"""Slow trainers stop the solvers, slow solvers leave the trainers asleep, and nothing waits for ever."""

import pytest
from jobs import JobFolder

MB = 1 << 20

# prints the peak of its memory, in MB, before the first sample and at the end
PEAK = """
import resource
def peak(name):
    print(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""

FAST = (
    PEAK
    + """
import numpy as np
import mpidata
u = np.ones((1024, 1024), np.float32)
mpidata.solver.group()
peak("before")
for simulation in mpidata.solver.simulations():
    for step in range(40):
        u[...] = 40 * simulation.id + step
        simulation.put(u=u)
        simulation.step(step)
peak("after")
"""
)

SLOW = (
    PEAK
    + """
import time
import torch
import mpidata
stream = mpidata.MPIStreamDataset(batch_size=4)
seen = set()
peak("before")
for number, batch in enumerate(stream):
    time.sleep(0.05 if number > 5 else 0.5)
    for i in range(4):
        value = 40 * int(batch["simulation"][i]) + int(batch["step"][i])
        assert torch.all(batch["u"][i] == value)
        seen.add(value)
peak("after")
print("distinct", len(seen))
"""
)


def peaks(log: str) -> int:
    values = dict(line.split() for line in log.splitlines() if line.startswith(("before", "after")))
    return int(values["after"]) - int(values["before"])


def test_a_slow_trainer_costs_bounded_memory_and_no_sample(folder: JobFolder) -> None:
    capacity, in_flight, sample_mb = 16, 4, 4
    folder.write(solve=FAST, train=SLOW)
    folder.job(
        solvers={"groups": 2, "program": ["python", "solve.py"], "in_flight": in_flight},
        fields={"u": {"dtype": "float32", "shape": [1024, 1024]}},
        buffer={"policy": "fifo", "capacity": capacity},
    )
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    assert "distinct 160" in result.log("trainer")
    assert peaks(result.log("trainer")) < capacity * sample_mb + 200
    for solver in range(2):
        assert peaks(result.log("solver", solver)) < in_flight * sample_mb + 100


def test_a_slow_solver_leaves_the_trainer_asleep(folder: JobFolder) -> None:
    folder.write(
        sim=(
            "import time\ndef simulate(alpha):\n    yield {'u': [[alpha] * 6] * 4}\n    time.sleep(3)\n"
            "    yield {'u': [[alpha] * 6] * 4}\n"
        ),
        train=(
            "import time\nfrom numpy_stream import stream\nfor batch in stream(1):\n"
            "    now = time.monotonic(), time.process_time()\n"
            "    if int(batch['step'][0]) == 0: start = now\n"
            "    else: print('share', (now[1] - start[1]) / (now[0] - start[0]), now[0] - start[0])\n"
        ),
    )
    folder.job(solvers={"function": "sim:simulate"}, parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}})
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    share, seconds = map(float, result.log("trainer").split("share")[1].split()[:2])
    assert seconds > 2.5
    assert share < 0.10


@pytest.mark.parametrize(
    ("buffer", "tail"),
    [
        ({"policy": "fifo"}, "drop"),
        ({"policy": "firo", "watermark": 2}, "repeat"),
        pytest.param({"policy": "reservoir"}, "drop", marks=pytest.mark.full),
        pytest.param({"policy": "fifo"}, "repeat", marks=pytest.mark.full),
        pytest.param({"policy": "firo", "watermark": 2}, "drop", marks=pytest.mark.full),
        pytest.param({"policy": "reservoir"}, "repeat", marks=pytest.mark.full),
    ],
)
def test_trainers_that_get_unequal_shares_end_together(folder: JobFolder, buffer: dict[str, object], tail: str) -> None:
    # Trainer 0 gets twice as many samples as trainer 1, far more than its buffer holds more than the other's.
    folder.write(
        sim=(
            "def simulate(alpha, simulation):\n"
            "    for step in range(3 if simulation % 2 == 0 else 2):\n"
            "        yield {'u': [[float(simulation)] * 6] * 4}\n"
        ),
        train=(
            "from mpidata.native.waiting import wait\nfrom mpidata.trainer.join import join\n"
            "from numpy_stream import stream\n"
            "seen, batches = set(), 0\n"
            "for batch in stream(4):\n"
            "    batches += 1\n"
            "    seen.update(zip(batch['simulation'].tolist(), batch['step'].tolist()))\n"
            "    wait(join().communicator.Ibarrier())\n"  # as in DistributedDataParallel
            "print('batches', batches, 'distinct', len(seen))\n"
        ),
    )
    folder.job(
        trainers={"ranks": 2},
        solvers={"groups": 2, "function": "sim:simulate"},
        parameters={"count": 120, "space": {"alpha": [0.0, 1.0]}},
        buffer={**buffer, "capacity": 8, "tail": tail},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["per_trainer"] == [180, 120], result.summary
    lines = [result.log("trainer", t).split() for t in range(2)]
    batches = [int(line[1]) for line in lines]
    assert batches[0] == batches[1] == result.summary["batches"]["per_trainer"][0]
    if buffer["policy"] != "reservoir":
        assert batches[0] == (30 if tail == "drop" else 45)
        assert int(lines[0][3]) == 4 * batches[0]
        assert int(lines[1][3]) == 120


def test_an_array_is_waited_for_alone(folder: JobFolder) -> None:
    """With one taken and others under way, as the trainer draws nothing yet."""
    folder.write(
        solve=(
            "import pathlib, time\nimport numpy as np\nimport mpidata\n"
            "u = [np.full((512, 512), i, np.float32) for i in range(24)]\n"
            "for simulation in mpidata.solver.simulations():\n"
            "    for i, values in enumerate(u):\n"
            "        simulation.iput('u', values)\n"
            "        simulation.step(i)\n"
            "    simulation.wait(u[0])\n"
            "    simulation.wait(np.zeros(3))\n"  # was never lent
            "    pathlib.Path('one').touch()\n"
            "    since = time.monotonic()\n"
            "    simulation.wait()\n"
            "    print('all', time.monotonic() - since)\n"
        ),
        train=(
            "import pathlib, time\nfrom numpy_stream import stream\nsamples = stream()\n"
            "while not pathlib.Path('one').exists():\n    time.sleep(0.01)\n"
            "time.sleep(1)\n"
            "print(sum(bool((s['u'] == s['step']).all()) for s in samples))\n"
        ),
    )
    folder.job(
        solvers={"program": ["python", "solve.py"], "in_flight": 24},
        fields={"u": {"dtype": "float32", "shape": [512, 512]}},
        parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 4},
    )
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert "\n24\n" in f"\n{result.log('trainer')}", result.logs()
    assert float(result.log("solver").split("all")[1]) > 0.5
