"""The validation samples of a trainer."""

import pytest
import torch
from fake_library import FakeLibrary, make_plan, make_trainer, numbers
from torch.utils.data import DataLoader

from mpidata.errors import StreamError
from mpidata.trainer import join as job
from mpidata.trainer.dataset import MPIStreamDataset


def test_validation(library):
    library.n_validation, library.again = 4, 2
    stream = MPIStreamDataset(2)
    dataset = stream.validation()
    assert stream.validation() is dataset and len(dataset) == 4
    sample = dataset[3]
    assert torch.equal(sample["temperature"], torch.full((2, 3), 3.0)) and sample["scalar"].item() == 3
    assert sample["parameters"].tolist() == [3, -3] and sample["time"].item() == 1.5
    assert (sample["step"].item(), sample["simulation"].item()) == (3, 3)
    sample["temperature"] += 1
    assert dataset[-1]["temperature"][0, 0] == 3  # a copy
    with pytest.raises(IndexError, match="no sample 4: this trainer holds 4"):
        dataset[4]


def test_validation_in_a_dataloader(library):
    library.n_validation = 5
    (first, second) = DataLoader(MPIStreamDataset(2).validation(), batch_size=3)
    assert numbers(first) == [0, 1, 2] and numbers(second) == [3, 4]
    assert first["time"].dtype == torch.float64 and first["step"].dtype == torch.int64
    with pytest.raises(StreamError, match="does not work with validation samples"):
        next(iter(DataLoader(MPIStreamDataset(2).validation(), num_workers=1, multiprocessing_context="fork")))


def test_validation_of_a_job_that_stops(library):
    stream = MPIStreamDataset(2)
    library.stopped.append("by another trainer")
    with pytest.raises(StreamError, match="stopped before the validation samples were complete"):
        stream.validation()


def test_no_parameters(monkeypatch):
    library = FakeLibrary(make_plan(parameters=()), validation=1)
    monkeypatch.setattr(job, "_trainer", None)
    make_trainer(library)
    assert MPIStreamDataset(2).validation()[0]["parameters"].shape == (0,)
