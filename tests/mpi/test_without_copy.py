"""Batches of a fifo buffer that are handed out where they were received."""

import json
from typing import Any

import pytest
from jobs import JobFolder

# Counts the batches that came without a copy, holds the last two, and writes into each, as a script may.
TRAIN = """
import json
import pathlib
import mpidata
from mpidata.trainer import join as job

trainer, pages = job.join(), 0
draw_page = trainer.draw_page

def counting(size):
    global pages
    page = draw_page(size)
    pages += page is not None
    return page

trainer.draw_page = counting
stream = mpidata.MPIStreamDataset(batch_size={batch_size})
pathlib.Path("started").touch()
seen, wrong, batches, held = [], 0, 0, []
for batch in stream:
    batches += 1
    single = {batch_size} is None
    value = (1000.0 * batch["simulation"] + batch["step"]).float().reshape(-1, *[1] * (1 if single else 2))
    wrong += int((batch["u"] != value).sum() + (batch["v"].flatten() != value.flatten()).sum())
    wrong += int((batch["parameters"].reshape(-1, 1)[:, 0] != batch["time"].flatten()).sum())
    seen += zip(batch["simulation"].reshape(-1).tolist(), batch["step"].reshape(-1).tolist())
    assert batch["u"].is_contiguous()
    batch["u"].fill_(-batches)
    held = [*held[-1:], (batch["u"], -batches)]
    wrong += sum(int((u != number).sum()) for u, number in held)
with open("seen.json", "w") as file:
    json.dump({{"seen": sorted(seen), "wrong": wrong, "batches": batches, "pages": pages}}, file)
"""


# Sends nothing before the trainer has told its batch size: what came earlier would be copied.
SOLVE = """
import pathlib
import time
import numpy as np
import mpidata

comm = mpidata.solver.group()  # joins the job, as the trainer then can
while not pathlib.Path("started").exists():
    time.sleep(0.01)
rank, size = comm.Get_rank(), comm.Get_size()
for simulation in mpidata.solver.simulations():
    for step in range({steps}):
        value, rows = 1000.0 * simulation.id + step, {rows}
        first = 3 * rows // 4 if rank else 0
        last = rows if rank or size == 1 else 3 * rows // 4
        simulation.put_block("u", np.full((last - first, 16), value, np.float32), (first, 0))
        if rank == 0:
            simulation.put(v=np.float64(value))
        simulation.step(simulation.parameters["alpha"])
"""


def run(folder: JobFolder, batch_size: int | None, rows: int, steps: int = 16, **keys: Any) -> dict[str, Any]:
    folder.write(train=TRAIN.format(batch_size=batch_size), solve=SOLVE.format(rows=rows, steps=steps))
    solvers = keys.pop("solvers", {})
    folder.job(
        trainers={"program": ["python", "train.py"]},
        solvers={"program": ["python", "solve.py"], **solvers},
        parameters={"count": 12, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [rows, 16]}, "v": {"dtype": "float64", "shape": []}},
        buffer={"policy": "fifo", "capacity": 24, **keys.pop("buffer", {})},
        **keys,
    )
    result = folder.run(timeout=100)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    seen: dict[str, Any] = json.loads((folder.path / "seen.json").read_text())
    assert seen["wrong"] == 0, seen
    return seen


def whole(steps: int) -> list[list[int]]:
    return [[simulation, step] for simulation in range(12) for step in range(steps)]


@pytest.mark.parametrize("rows", [4, 2048])  # packed, and each by itself
def test_one_group(folder: JobFolder, rows: int) -> None:
    seen = run(folder, 8, rows)
    assert seen["seen"] == whole(16) and seen["batches"] == 24
    assert seen["pages"] == 24


def test_single_samples(folder: JobFolder) -> None:
    seen = run(folder, None, 100, solvers={"groups": 2})
    assert seen["seen"] == whole(16) and seen["pages"] == 12 * 16


# Rank 0 of a group has three quarters: of 48 KB, more than is packed, though half of it would be.
@pytest.mark.parametrize(
    ("groups", "rows"),
    [
        pytest.param(groups, rows, marks=[] if (groups, rows) == (1, 768) else pytest.mark.full)
        for groups in (1, 2)
        for rows in (8, 768, 4096)
    ],
)
def test_groups_of_two_ranks(folder: JobFolder, rows: int, groups: int) -> None:
    seen = run(folder, 8, rows, solvers={"groups": groups, "ranks_per_group": 2}, validation={"count": 2})
    assert seen["seen"] == whole(16)
    # Of two groups one may be behind all the time, and samples of each page come too late for its batch.
    assert groups > 1 or seen["pages"] >= 1


@pytest.mark.parametrize(
    "buffer", [{"tail": "repeat"}, pytest.param({"policy": "firo"}, marks=pytest.mark.full), {"policy": "reservoir"}]
)
def test_what_may_be_drawn_again_is_copied(folder: JobFolder, buffer: dict[str, Any]) -> None:
    seen = run(folder, 8, 4, steps=17, buffer=buffer)
    assert seen["pages"] == 0
    assert {tuple(one) for one in seen["seen"]} == {tuple(one) for one in whole(17)} or buffer.get("policy")


@pytest.mark.full
def test_what_is_recorded_stays_as_it_came(folder: JobFolder) -> None:
    """Though the script writes into its batches while they may wait for the disk."""
    from mpidata import RecordedDataset

    run(folder, 8, 1024, record={"path": "samples"})
    dataset = RecordedDataset(folder.path / "samples")
    assert len(dataset) == 12 * 16
    for i in range(len(dataset)):
        sample = dataset[i]
        assert bool((sample["u"] == float(1000 * sample["simulation"] + sample["step"])).all())
