"""The validation samples of a trainer."""

import copy
import pickle
from types import SimpleNamespace

import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from fake_library import FakeLibrary, make_plan, make_trainer, numbers
from lightning.pytorch.overrides.distributed import UnrepeatedDistributedSampler, UnrepeatedDistributedSamplerWrapper
from lightning.pytorch.trainer.connectors.data_connector import _DataConnector
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
)

from mpidata.errors import StreamError
from mpidata.run.plan import Field
from mpidata.trainer import join as job
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.validation.equal_shares import EvenValidation
from mpidata.trainer.validation.share import ValidationDataset


def test_validation_samples_are_read_by_index(library):
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


def test_dataloader_batches_validation_samples_but_refuses_workers(library):
    library.n_validation = 5
    (first, second) = DataLoader(MPIStreamDataset(2).validation(), batch_size=3)
    assert numbers(first) == [0, 1, 2] and numbers(second) == [3, 4]
    assert first["time"].dtype == torch.float64 and first["step"].dtype == torch.int64
    with pytest.raises(StreamError, match="does not work with validation samples"):
        next(iter(DataLoader(MPIStreamDataset(2).validation(), num_workers=1, multiprocessing_context="fork")))


def test_validate_sums_over_all_validation_samples(library):
    library.n_validation = 5
    stream, sizes = MPIStreamDataset(2), []

    def measure(batch):
        sizes.append(len(batch["step"]))
        return torch.stack([batch["scalar"].sum(), torch.tensor(len(batch["step"]))])

    sums = stream.validate(measure, batch_size=2)
    assert sums.tolist() == [0 + 1 + 2 + 3 + 4, 5] and sums.dtype == torch.float64 and sizes == [2, 2, 1]
    with pytest.raises(StreamError, match="returned 2 numbers for one batch, and 1 for another"):
        stream.validate(lambda batch: torch.zeros(len(batch["step"])), batch_size=2)
    with pytest.raises(StreamError, match="batch_size"):
        stream.validate(measure, batch_size=0)


def test_validation_samples_added_after_a_loss_follow_the_others(library):
    library.n_validation = 2
    steps, locate = [4, 8], library.mpidata_trainer_validation_sample

    def located(index, numbers, parameters, times, step, simulation):
        status = locate(index, numbers, parameters, times, step, simulation)
        step._obj.value = steps[index]
        return status

    library.mpidata_trainer_validation_sample = located
    stream = MPIStreamDataset(2)
    share = stream.validation()
    library.n_validation, steps = 4, [2, 4, 6, 8]
    assert len(share) == 2  # because no trainer can have died
    stream._trainer.members = SimpleNamespace(generation=1)
    assert len(share) == 4 and [int(share[i]["step"]) for i in range(4)] == [4, 8, 2, 6]
    assert share[0]["temperature"][0, 0] == 1  # it is held elsewhere now
    library.n_validation, steps = 5, [1, 2, 4, 6, 8]
    assert [int(sample["step"]) for sample in DataLoader(share, batch_size=None)] == [4, 8, 2, 6, 1]
    with pytest.raises(StreamError, match="cannot be used with 'trainers.elastic'"):
        stream.validation(even=True)
    stream.close()
    assert len(share) == 5


def test_validation_raises_if_the_job_stops_first(library):
    stream = MPIStreamDataset(2)
    library.stopped.append("by another trainer")
    with pytest.raises(StreamError, match="stopped before the validation samples were complete"):
        stream.validation()


def test_validation_samples_without_parameters_have_an_empty_tensor(monkeypatch):
    library = FakeLibrary(make_plan(parameters=()), validation=1)
    monkeypatch.setattr(job, "_trainer", None)
    make_trainer(library)
    assert MPIStreamDataset(2).validation()[0]["parameters"].shape == (0,)


def test_distributed_sampler_yields_the_complete_share(library):
    library.n_validation = 5
    validation = MPIStreamDataset(2).validation()
    for drop_last in (False, True):
        sampler = DistributedSampler(validation, num_replicas=2, rank=1, shuffle=False, drop_last=drop_last)
        assert list(sampler) == [0, 1, 2, 3, 4] == list(range(len(sampler)))
    subset = DistributedSampler(Subset(validation, [0, 1, 2, 3]), num_replicas=2, rank=1, shuffle=False)
    assert list(subset) == [1, 3], "of another dataset"


@pytest.fixture
def two_trainers(monkeypatch):
    library = FakeLibrary(make_plan(trainers=2), validation=5)
    monkeypatch.setattr(job, "_trainer", None)
    make_trainer(library)
    return MPIStreamDataset(2)


AROUND = {
    "Subset": lambda dataset: Subset(dataset, [0, 1, 2, 3]),
    "of a Subset": lambda dataset: Subset(Subset(Subset(dataset, range(5)), [0, 1, 2, 3]), range(4)),
    "ConcatDataset": lambda dataset: ConcatDataset([dataset, dataset]),
    "of a ConcatDataset": lambda dataset: Subset(ConcatDataset([Subset(dataset, [0, 1]), dataset]), range(4)),
}


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("around", AROUND)
def test_samplers_that_would_divide_a_wrapped_share_again_are_refused(two_trainers, around, even):
    share = two_trainers.validation() if not even else EvenValidation(two_trainers.validation(), 6, None)
    dataset = AROUND[around](share)
    assert len(list(DataLoader(dataset, batch_size=2))) >= 2  # not dealt out again
    assert len(list(DataLoader(dataset, batch_size=2, shuffle=True))) >= 2
    assert len(list(DataLoader(share, 2, sampler=DistributedSampler(share, num_replicas=2, rank=1)))) == 3
    told = r"stream.validation\(\) a second time, and some of the samples would be on no trainer"
    by_index = DistributedSampler(dataset, num_replicas=2, rank=1)
    for given in ({"sampler": by_index}, {"batch_sampler": BatchSampler(by_index, 2, drop_last=False)}):
        with pytest.raises(StreamError, match="A DistributedSampler would divide " + told):
            list(DataLoader(dataset, **given))
    shard = BatchSamplerShard(BatchSampler(SequentialSampler(dataset), 1, drop_last=False), 2, 1)
    with pytest.raises(StreamError, match="accelerator.prepare would divide " + told):
        list(DataLoader(dataset, batch_sampler=shard))


@pytest.mark.parametrize("allowed", [False, True])
def test_empty_share_is_refused_unless_lightning_allows_it(two_trainers, allowed):
    trainer = SimpleNamespace(
        lightning_module=SimpleNamespace(allow_zero_length_dataloader_with_multiple_devices=allowed),
        distributed_sampler_kwargs={"num_replicas": 2, "rank": 1},
        overfit_batches=0,
        state=SimpleNamespace(fn=None),
        _accelerator_connector=SimpleNamespace(use_distributed_sampler=True, is_distributed=True),
    )
    share = two_trainers.validation()
    loader = DataLoader(share)
    share._samples = []
    if allowed:
        assert len(_DataConnector(trainer)._resolve_sampler(loader, shuffle=False)) == 0
    else:
        with pytest.raises(StreamError, match=r"empty, which Lightning refuses. Use stream.validation\(even=True\)"):
            _DataConnector(trainer)._resolve_sampler(loader, shuffle=False)
    assert len(share) == 0


def test_lightning_samplers_of_a_subset_of_a_share_are_refused(two_trainers):
    dataset = Subset(two_trainers.validation(), [0, 1, 2, 3])
    for kind in (UnrepeatedDistributedSampler, DistributedSampler):
        with pytest.raises(StreamError, match="use_distributed_sampler=False"):
            list(DataLoader(dataset, sampler=kind(dataset, num_replicas=2, rank=1)))
    wrapped = UnrepeatedDistributedSamplerWrapper(RandomSampler(dataset), num_replicas=2, rank=1)
    with pytest.raises(StreamError, match="use_distributed_sampler=False"):
        list(DataLoader(dataset, sampler=wrapped))


@pytest.mark.parametrize("arguments", [{"share": False}, {"even": True}])
def test_share_false_and_even_true_change_no_samples_of_one_trainer(library, arguments):
    library.n_validation = 3
    stream = MPIStreamDataset(2)
    dataset = stream.validation(**arguments)
    assert stream.validation(**arguments) is dataset and len(dataset) == 3
    sample = dataset[2]
    assert sample.pop("mask", torch.tensor(True)).item() and "mask" not in stream.validation()[2]
    expected = stream.validation()[2]
    assert sample.keys() == expected.keys() and all(torch.equal(sample[name], expected[name]) for name in sample)
    sample["temperature"] += 1
    assert torch.equal(dataset[-1]["temperature"], expected["temperature"])  # a copy
    with pytest.raises(IndexError):
        dataset[3]


def test_impossible_padding_is_refused(library, monkeypatch):
    stream = MPIStreamDataset(2)
    with pytest.raises(StreamError, match="there is nothing to pad"):
        stream.validation(share=False, even=True)
    library = FakeLibrary(make_plan(fields=(Field("mask", "float32", (2,)),)), validation=1)
    monkeypatch.setattr(job, "_trainer", None)
    make_trainer(library)
    with pytest.raises(StreamError, match="the job has a field 'mask'"):
        MPIStreamDataset(2).validation(even=True)


def test_padding_samples_have_a_false_mask(library):
    library.n_validation = 2
    share = MPIStreamDataset(2).validation()
    padded = EvenValidation(share, 3, None)
    assert [(int(sample["step"]), bool(sample["mask"])) for sample in map(padded.__getitem__, range(3))] == [
        (0, True),
        (1, True),
        (0, False),
    ]
    filler = share[1]
    library.n_validation = 0
    empty = EvenValidation(ValidationDataset(share.trainer, 0), 1, filler)
    assert int(empty[0]["step"]) == 1 and not empty[0]["mask"]


def test_validation_samples_are_in_cpu_memory_for_any_default_device(library):
    library.n_validation = 2
    validation = MPIStreamDataset(2).validation()
    torch.set_default_device("meta")
    try:
        sample = validation[1]
    finally:
        torch.set_default_device(None)
    assert all(values.device.type == "cpu" for values in sample.values())
    assert sample["temperature"].tolist() == [[1.0] * 3] * 2 and sample["step"].item() == 1


def test_validation_samples_cannot_be_copied_pickled_or_sliced(library):
    library.n_validation = 3
    validation = MPIStreamDataset(2).validation()
    for call in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(StreamError, match=r"cannot be copied or pickled.*list\(stream.validation\(\)\)"):
            call(validation)
    with pytest.raises(StreamError, match="num_workers > 0 does not work with validation samples"):
        next(iter(DataLoader(validation, num_workers=1, multiprocessing_context="spawn")))
    with pytest.raises(TypeError, match="slice"):
        validation[1:3]
    assert validation[torch.tensor(1)]["simulation"] == validation[1]["simulation"]
