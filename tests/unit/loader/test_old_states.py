"""States that were saved before they held random states and contents of parts, by commit e88f24a, still go on."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from fake_loaders import FakeNetwork
from torch.utils.data import Sampler

from mpidata.data_loader.data_loader import DataLoader
from mpidata.files.dataset import FileDataset
from mpidata.files.work import FileWork
from mpidata.loader.batches import Batches
from mpidata.loader.serve import serve
from mpidata.trainer import place as job
from mpidata.trainer.place import Place

ROWS, SIZE = 22, 4
OLD = json.loads((Path(__file__).parent / "old_states.json").read_text())


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


@pytest.fixture(autouse=True)
def parts(monkeypatch, tmp_path):
    for part, rows in enumerate(np.array_split(np.arange(ROWS), 3)):
        path = tmp_path / f"{part}.csv"
        path.write_text("data\n" + "".join(f"{row}\n" for row in rows))
        os.utime(path, ns=(10**18 + part, 10**18 + part))
    network = FakeNetwork(lambda requests: serve(requests, [Batches(requests), FileWork(requests)]), 1, 1)
    place = Place(network.trainers[0], 0, 1, 1, 2, 5, lambda name, thing: None)
    monkeypatch.setattr(job, "place", lambda: place)
    yield tmp_path
    network.close()


def batches_of(dataset):
    return [(batch["data"] if isinstance(batch, dict) else batch).tolist() for batch in dataset]


@pytest.mark.parametrize("name", MAKERS)
def test_an_old_state_in_mid_epoch(parts, name):
    dataset = MAKERS[name](parts)
    dataset.load_state_dict(OLD[name]["state"])
    assert dataset.resumed == (1, 2) and batches_of(dataset) == OLD[name]["rest"]


@pytest.mark.parametrize("name", MAKERS)
def test_an_old_state_after_the_last_batch_is_that_of_the_next_epoch(parts, name):
    dataset = MAKERS[name](parts)
    dataset.load_state_dict(OLD[name]["last"])
    assert dataset.resumed == (1, 0) and batches_of(dataset) == OLD[name]["next"]
