"""Trainers that make a shared dataset differently are refused, and the error names the item that differs."""

import random

import numpy as np
import pytest
import torch
from both_datasets import network_of_both
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.files.dataset import FileDataset
from mpidata.errors import StreamError
from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place


class Files(Dataset):
    """A list that each trainer may shuffle itself."""

    def __init__(self, files, note=()):
        self.files, self.note = files, list(note)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return index


class Single(Files):
    """With an array that is not a list."""

    def __init__(self, rank):
        super().__init__(PATHS)
        self.rank, self.also = torch.tensor(rank), np.array(rank)


def shuffled(values, seed):
    values = list(values)
    random.Random(seed).shuffle(values)
    return values


def generator(seed):
    return torch.Generator().manual_seed(seed)


PATHS = [f"/somewhere/{i}.png" for i in range(12)]
SAME = {
    "range": lambda r, parts: DataLoader(range(12), 2, share=True),
    "a seed of the script's": lambda r, parts: DataLoader(range(12), 2, True, share=True, generator=generator(5)),
    "a note of each": lambda r, parts: DataLoader(Files(PATHS, [r]), 2, share=True),
    "folders of each": lambda r, parts: DataLoader(Files([f"/scratch{r}/{i}" for i in range(12)]), 2, share=True),
    "paths as objects": lambda r, parts: DataLoader(
        Files(np.array(["".join(p) for p in PATHS], object)), 2, share=True
    ),
    "a note of any kind": lambda r, parts: DataLoader(Files(PATHS, [object() for _ in PATHS]), 2, share=True),
    "a tensor of any kind": lambda r, parts: DataLoader(Files(torch.ones(12, 2, dtype=torch.bfloat16)), 2, share=True),
    "a single tensor": lambda r, parts: DataLoader(Single(r), 2, share=True),
    "a subset": lambda r, parts: DataLoader(Subset(range(24), range(0, 24, 2)), 2, share=True),
    "files": lambda r, parts: FileDataset(parts, 2),
    "a list that each shuffles": lambda r, parts: FileDataset(shuffled(parts, r), 2),
    "not shared": lambda r, parts: FileDataset(parts[r::2], 2, share=False),
    "in order, other seeds": lambda r, parts: FileDataset(parts, 2, shuffle=None, seed=r),
}
OTHER = {
    "len(dataset)": (lambda r, parts: DataLoader(range(12 + r), 2, share=True), "13", "12"),
    "Subset.indices": (lambda r, parts: DataLoader(Subset(range(16), range(r, 16, 2)), 2, share=True), "1, 3", "0, 2"),
    "seed": (lambda r, parts: DataLoader(range(12), 2, True, share=True, generator=generator(r)), "1", "0"),
    "batch_size": (lambda r, parts: DataLoader(range(12), 2 + r, share=True), "3", "2"),
    "drop_last": (lambda r, parts: DataLoader(range(12), 2, share=True, drop_last=bool(r)), "True", "False"),
    "shuffle": (lambda r, parts: DataLoader(range(12), 2, bool(r), share=True), "True", "False"),
    "dataset.files": (lambda r, parts: DataLoader(Files(shuffled(PATHS, r)), 2, share=True), "png", "png"),
    "Subset.dataset: dataset.files": (
        lambda r, parts: DataLoader(Subset(Files(shuffled(PATHS, r)), range(6)), 2, share=True), "png", "png"
    ),
    "TensorDataset.tensors[0]": (
        lambda r, parts: DataLoader(TensorDataset(torch.arange(24.0)[r::2]), 2, share=True), "(12,)", "(12,)"
    ),
    "dataset.files ": (lambda r, parts: DataLoader(Files(np.array(PATHS)[[r, 2]]), 2, share=True), "1.png", "0.png"),
    "dataset.files  ": (
        lambda r, parts: DataLoader(Files([(PATHS[r], 0), (PATHS[2], 1)]), 2, share=True), "1.png", "0.png"
    ),
    "ConcatDataset.datasets[0]: Subset.indices": (
        lambda r, parts: DataLoader(ConcatDataset([Subset(range(24), range(r, 24, 2))]), 2, share=True), "1, 3", "0, 2"
    ),
    r"dataset\[...\]": (lambda r, parts: DataLoader(shuffled(range(12), r), 2, share=True), "(12)", "(12)"),
    "paths": (lambda r, parts: FileDataset(parts[r::2], 2), "1.npy, 3.npy", "0.npy, 2.npy"),
    "columns": (lambda r, parts: FileDataset(parts, 2, [["data"], {"x": "data"}][r]), "'x'", "['data']"),
    "batch_size ": (lambda r, parts: FileDataset(parts, 2 + r), "3", "2"),
    "seed ": (lambda r, parts: FileDataset(parts, 2, seed=7 + r), "8", "7"),
    "shuffle ": (lambda r, parts: FileDataset(parts, 2, shuffle=["parts", "rows"][r]), "rows", "parts"),
    "open_parts": (lambda r, parts: FileDataset(parts, 2, shuffle="parts", open_parts=1 + r), "2", "1"),
}  # fmt: skip


@pytest.fixture
def both(monkeypatch, tmp_path):
    """Make a dataset on each of two trainers and take a batch of each."""
    parts = [str(tmp_path / f"{i}.npy") for i in range(4)]
    for i, path in enumerate(parts):
        np.save(path, np.arange(4) + 4 * i)
    networks = []
    monkeypatch.setenv("MPIDATA_RUN", "/run")

    def make(of, loaders=2, times=1):
        network = network_of_both(loaders, 2)
        networks.append(network)
        places = [Place(side, t, 2, loaders, 2, 5, lambda name, thing: None) for t, side in enumerate(network.trainers)]
        for _ in range(times):
            sets = []
            for trainer, place in enumerate(places):
                monkeypatch.setattr(job, "place", lambda place=place: place)
                sets.append(of(trainer, parts))
            for dataset in sets:
                list(dataset)
        return sets

    yield make
    for network in networks:
        network.close()


@pytest.mark.parametrize("loaders", [1, 3])
@pytest.mark.parametrize("of", SAME.values(), ids=SAME)
def test_trainers_with_equal_datasets_are_served(both, of, loaders):
    both(of, loaders, times=3)


@pytest.mark.parametrize(("name", "of"), OTHER.items(), ids=OTHER)
def test_error_names_the_item_that_differs_between_trainers(both, name, of):
    make, own, other = of
    with pytest.raises(StreamError) as caught:
        both(make)
    said = str(caught.value)
    item = name.strip().replace("\\", "")
    assert "trainer 1 has " + item in said and "share=True divides the samples by itself" in said
    before, _, after = said.partition("but trainer 0 has")
    assert own in before and other in after


def test_refreshed_dataset_is_compared_again(both):
    def grown(trainer, parts):
        dataset = Files(list(PATHS))
        loader = DataLoader(dataset, 2, share=True)
        list(loader)
        dataset.files.append("another")
        if trainer == 0:
            loader.refresh()
        return loader

    both(grown)
