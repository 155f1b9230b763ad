"""One random job of the loader campaign: all its choices and its loaders' deaths follow from one seed.

FileDataset and DataLoader in all settings, 1 to 3 trainers, 2 to 4 loaders, spares, split and spawn, with five ends of
loaders each. Whatever dies, each epoch has every row once, in the order that follows from the seed alone, no process is
left, and the job continues without a restart.
"""

import dataclasses
import json
import random
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from jobs import JobFolder, Result, python, ranks_of, variables_of
from killing import Killer, events_of

from mpidata.datasets.epochs.shares import Shares
from mpidata.loading.blocks import blocks_of
from mpidata.loading.permutation import Permutation

# How a loader ends, and the cause that its event must give. The last two use loaders/ends_by_signal.py.
WAYS = {
    signal.SIGKILL: "signal",
    signal.SIGSTOP: "silent",
    signal.SIGRTMIN + 1: "exit",
    signal.SIGRTMIN + 2: "exit",
}
FORMATS = ("npy", "parquet", "csv", "h5")


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    dataset: str
    shuffle: str | bool | None
    share: bool
    drop_last: bool
    rows: int
    parts: tuple[int, ...]  # rows of each part
    formats: tuple[str, ...]
    open_parts: int
    prefetch_factor: int
    repeat: int  # a sample of a DataLoader has `repeat` times 16 bytes
    trainers: int
    batch_size: int
    epochs: int
    loaders: int
    start: str
    spares: int
    work_s: float  # time of a loader for a row
    step_s: float
    kills: int
    at_once: float

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def draw(seed: int, kills: int = 5) -> Draw:
    """Generate the job of a seed."""
    chosen = random.Random(f"loader campaign {seed}")
    dataset = chosen.choice(["FileDataset", "FileDataset", "DataLoader"])
    files = dataset == "FileDataset"
    parts = tuple(int(10 ** chosen.uniform(0, 2.7)) for _ in range(chosen.randint(1, 12)))
    rows = sum(parts) + 60
    trainers, epochs = chosen.randint(1, 3), chosen.randint(1, 4)
    batches = chosen.randint(4, 40)
    share = chosen.random() < 0.8
    start = chosen.choice(["split", "split", "spawn"])
    return Draw(
        seed=seed,
        dataset=dataset,
        shuffle=chosen.choice(["rows", "parts", None] if files else [True, False]),
        share=share,
        drop_last=chosen.random() < 0.2,
        rows=rows,
        parts=(*parts, 60),
        formats=tuple(chosen.choice(FORMATS) for _ in range(len(parts) + 1)),
        open_parts=chosen.randint(1, 4),
        prefetch_factor=chosen.randint(1, 3),
        repeat=1 if files else int(10 ** chosen.uniform(0, 4)),
        trainers=trainers,
        batch_size=max(1, rows // batches // (trainers if share else 1)),
        epochs=epochs,
        loaders=chosen.randint(2, 4),
        start=start,
        spares=chosen.randint(0, 3) if start == "split" else 0,
        work_s=chosen.choice([0.0, 1.0 / rows]),
        step_s=0.3 * (kills + 1) / (epochs * batches) * chosen.uniform(0.2, 1.5),
        kills=kills,
        at_once=chosen.choice([0.0, 0.3]),
    )


def build(folder: Path) -> None:
    """Do nothing: there is nothing to build."""


class LoaderKiller(Killer):
    """Kills loaders, including spares, once they take requests."""

    what, works, lost, over = "loader", "loader_joined", "loader_lost", "end"
    ways = WAYS

    def ranks(self, folder: Path, **layout: int | str) -> dict[int, list]:
        """Return the loaders that run."""
        found: dict[int, list] = {}
        for process in ranks_of(folder):
            try:
                if "mpidata.loader" not in process.cmdline() or process.name() == "mpidata-rank":
                    continue
                shim = process.parent().cmdline()
                rank = int(variables_of(process)["OMPI_COMM_WORLD_RANK"])
                spawned = "--loader" in shim
                loader = int(shim[shim.index("--loader") + 1]) if spawned else rank - 1 - int(layout["trainers"])
                found.setdefault(loader, []).append(process)
            except (psutil.Error, AttributeError, KeyError):
                continue
        return found


def write_job(folder: JobFolder, one: Draw) -> None:
    """Write the job file, what the trainers read, and the parts."""
    loaders = {"ranks": one.loaders, "start": one.start, "retries": 20, "timeout_s": 3, "start_timeout_s": 10}
    job = {
        "name": "job",
        "seed": one.seed,
        "trainers": {"ranks": one.trainers, "program": python("trainers/census/census_rows.py")},
        "loaders": loaders | ({"spares": one.spares} if one.start == "split" else {}),
    }
    folder.write_job(job)
    (folder.path / "draw.json").write_text(json.dumps(dataclasses.asdict(one)))
    folder.write(sitecustomize="import loaders.ends_by_signal\n")
    if one.dataset == "FileDataset":
        write_parts(folder.path / "parts", one)


def write_parts(folder: Path, one: Draw) -> None:
    """Write the part files with consecutive row numbers."""
    import h5py

    folder.mkdir()
    first = 0
    for number, (size, form) in enumerate(zip(one.parts, one.formats, strict=True)):
        row = np.arange(first, first + size)
        first += size
        columns = {"row": row, "a": row + 0.25, "b": -row - 0.5}
        path = folder / f"{number:02}.{form}"
        if form == "npy":
            array = np.empty(size, [(name, column.dtype) for name, column in columns.items()])
            for name, column in columns.items():
                array[name] = column
            np.save(path, array)
        elif form == "h5":
            with h5py.File(path, "w") as file:
                file.update(columns)
        else:
            write = pyarrow.csv.write_csv if form == "csv" else pyarrow.parquet.write_table
            write(pyarrow.table(columns), path)


def run_draw(folder: JobFolder, built: Path, seed: int, kills: int = 5, timeout: float = 240) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    one = draw(seed, kills)
    write_job(folder, one)
    killer = LoaderKiller(folder.path, one.kills, seed, one.at_once, trainers=one.trainers)
    killer.start()
    try:
        result = folder.run(timeout=timeout)
    finally:
        killer.stop()
    assert result.status == 0, result.logs()
    assert len(killer.killed) == one.kills, f"the job ended after {len(killer.killed)} kills\n{result.logs()}"
    check_losses(folder.path, result, killer)
    check_rows(one, folder.path)
    check_figures(one, folder.path, result)
    ways = ", ".join(f"{way}x{n}" for way, n in sorted(Counter(int(way) for _, way in killer.killed).items()))
    return f"{result.seconds:.0f} s, signals {ways}"


def check_losses(folder: Path, result: Result, killer: Killer) -> None:
    """Only killed loaders were lost, each with its cause; the last deaths may come too late to be reported."""
    assert result.summary["status"] == "complete", result.logs()
    lost = [event for event in events_of(folder) if event["event"] == "loader_lost"]
    killed = dict(killer.killed)
    for event in lost:
        assert event["loader"] in killed, f"loader {event['loader']} was lost, but not killed: {event}\n{result.logs()}"
        assert event["cause"] == WAYS[killed[event["loader"]]], f"signal {killed[event['loader']]}: {event}"
    assert result.summary["loaders"]["lost"] == len(lost)


def check_rows(one: Draw, folder: Path) -> None:
    """Each epoch has each row once, over all trainers or on each, in its order."""
    counted = [json.loads((folder / f"census-{trainer}.json").read_text()) for trainer in range(one.trainers)]
    dealt = one.trainers if one.share else 1
    shares = Shares(one.rows, one.batch_size, dealt, one.drop_last)
    for trainer, epochs in enumerate(counted):
        assert len(epochs) == one.epochs
        for epoch, seen in enumerate(epochs):
            batches = [shares.places(trainer % dealt, batch) for batch in range(shares.batches)]
            if one.dataset == "DataLoader" and one.shuffle and not one.share:  # in the order of torch's sampler
                assert sorted(seen) == sorted(set(seen)) and len(seen) == sum(map(len, batches))
            else:
                order = order_of(one, epoch)
                expected = [order[place] for places in batches for place in places]
                assert seen == expected, f"epoch {epoch} of trainer {trainer}: {Counter(seen) - Counter(expected)}"


def check_figures(one: Draw, folder: Path, result: Result) -> None:
    """The summary counts the samples that arrived, and each trainer reports the end of each epoch."""
    loaded = result.summary["loaded"]
    counted = [json.loads((folder / f"census-{trainer}.json").read_text()) for trainer in range(one.trainers)]
    assert loaded["samples"] == sum(len(seen) for epochs in counted for seen in epochs), loaded
    assert loaded["epoch"] == one.epochs - 1 and all(0 < wait < result.seconds for wait in loaded["wait_s"]), loaded
    ended = [(event["trainer"], event["epoch"]) for event in events_of(folder) if event["event"] == "epoch"]
    assert sorted(ended) == [(t, epoch) for t in range(one.trainers) for epoch in range(one.epochs)]


def order_of(one: Draw, epoch: int) -> list[int]:
    """Return the rows of an epoch in order."""
    if one.dataset == "DataLoader":
        places = np.arange(one.rows)
        return (Permutation(one.rows, one.seed, epoch).rows(places) if one.shuffle else places).tolist()
    firsts = np.cumsum([0, *one.parts])
    order: list[int] = []
    for block in blocks_of(one.parts, one.shuffle, one.open_parts, one.seed, epoch):
        rows = np.concatenate([np.arange(firsts[part], firsts[part + 1]) for part in block.parts])
        order += rows[block.rows_at(np.arange(block.rows))].tolist()
    assert sorted(order) == list(range(one.rows))
    return order
