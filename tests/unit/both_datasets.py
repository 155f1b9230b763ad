"""DataLoaders and FileDatasets with the same rows, and loaders for both in this process."""

import numpy as np
from fake_loaders import FakeNetwork
from torch.utils.data import Sampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.files.dataset import FileDataset
from mpidata.loaders.agreements import Agreements
from mpidata.loaders.batches import Batches
from mpidata.loaders.file_work import FileWork
from mpidata.loaders.serve import serve

__all__ = ["MAKERS", "ROWS", "SIZE", "network_of_both", "write_rows"]

ROWS, SIZE = 22, 4


class Back(Sampler):
    def __iter__(self):
        return iter(range(ROWS - 1, -1, -1))

    def __len__(self):
        return ROWS


MAKERS = {
    "loader": lambda folder: DataLoader(range(ROWS), SIZE),
    "loader, shuffled": lambda folder: DataLoader(range(ROWS), SIZE, shuffle=True),
    "loader, shared": lambda folder: DataLoader(range(ROWS), SIZE, shuffle=True, share=True),
    "loader, sampler": lambda folder: DataLoader(range(ROWS), SIZE, sampler=Back()),
    "files": lambda folder: FileDataset(folder, SIZE),
    "files, parts": lambda folder: FileDataset(folder, SIZE, shuffle="parts", open_parts=2),
    "files, in order": lambda folder: FileDataset(folder, SIZE, shuffle=None),
}


def write_rows(folder):
    """Write the rows into three parts; return their paths."""
    paths = []
    for part, rows in enumerate(np.array_split(np.arange(ROWS), 3)):
        paths.append(folder / f"{part}.csv")
        paths[-1].write_text("data\n" + "".join(f"{row}\n" for row in rows))
    return paths


def network_of_both(loaders, trainers=1):
    def run(requests):
        serve(requests, [Agreements(requests), Batches(requests), FileWork(requests)])

    return FakeNetwork(run, loaders, trainers)
