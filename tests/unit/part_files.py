"""Part files, and a job without MPI in which FileDatasets read them."""

import itertools
import threading

import h5py
import numpy as np
import pytest
from fake_loaders import FakeNetwork

from mpidata.datasets.files import dataset as files
from mpidata.datasets.files.dataset import FileDataset
from mpidata.errors import StreamError
from mpidata.loaders.agreements import Agreements
from mpidata.loaders.file_work import FileWork
from mpidata.loaders.serve import serve
from mpidata.trainer.loader_access import Place

__all__ = ["ROWS", "SIZES", "WRITERS", "Job", "make_parts", "refused", "write_npz"]

SIZES = [13, 1, 40, 7, 25]
ROWS = sum(SIZES)


def write_npz(path, x, y):
    np.savez(path, x=x, y=y)


def write_h5(path, x, y):
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = x, y


def write_parquet(path, x, y):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.table({"x": x.tolist(), "y": y}), path)


def write_feather(path, x, y):
    feather, pyarrow = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow")
    feather.write_feather(pyarrow.table({"x": x.tolist(), "y": y}), str(path))


def write_csv(path, x, y):
    path.write_text("a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True)))


WRITERS = {"npz": write_npz, "h5": write_h5, "parquet": write_parquet, "feather": write_feather, "csv": write_csv}


def make_parts(folder, kind="npz"):
    ends = itertools.accumulate(SIZES)
    for number, (size, end) in enumerate(zip(SIZES, ends, strict=True)):
        y = np.arange(end - size, end)
        WRITERS[kind](folder / f"part{number}.{kind}", np.stack([y * 2.0, y * 3.0], axis=1), y)
    return folder


def work(requests):
    serve(requests, [Agreements(requests), FileWork(requests)])


class Job:
    """Trainers and loaders in this process."""

    def __init__(self, monkeypatch, loaders, trainers, retries=2):
        self.network = FakeNetwork(work, loaders=loaders, trainers=trainers)
        self.trainers = trainers
        self.here = threading.local()
        self.reported = []
        rest = {"retries": retries, "seed": 5, "hold": self.hold, "report": lambda *what: self.reported.append(what)}
        self.places = [
            Place(loaders=side, trainer=t, trainers=trainers, workers=loaders, **rest)
            for t, side in enumerate(self.network.trainers)
        ]
        monkeypatch.setattr(files.job, "place", lambda: self.places[self.here.trainer])

    def hold(self, name, thing):
        assert thing.state_dict()["batches"] == 0

    def dataset(self, trainer, *args, **kwargs):
        self.here.trainer = trainer
        return FileDataset(*args, **kwargs)

    def rows(self, paths, batch, epochs=1, **kwargs):
        """Return the rows of some epochs by place, as (epochs, ROWS): in each step all trainers' batches in turn."""
        sets = [self.dataset(t, paths, batch, **kwargs) for t in range(self.trainers)]
        return [np.concatenate([b["y"].numpy() for bs in zip(*sets, strict=True) for b in bs]) for _ in range(epochs)]


def refused(rows, says, *args, **settings):
    with pytest.raises(StreamError, match=says):
        rows(*args, **settings)
