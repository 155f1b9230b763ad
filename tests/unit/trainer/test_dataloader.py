"""A stream in a DataLoader, and in forked processes: what cannot work is refused."""

import copy
import gc
import pickle

import pytest
from fake_library import FakeLibrary, make_trainer
from recording import make_plan_with_lengths
from torch.utils.data import DataLoader, IterableDataset

from mpidata import PackedCollate
from mpidata.errors import StreamError
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.validation.share import ValidationDataset


def test_batches_of_batches_are_refused(library):
    with pytest.raises(StreamError, match=r"batches of batches. Use DataLoader\(stream, batch_size=None\)"):
        next(iter(DataLoader(MPIStreamDataset(4), batch_size=4)))
    with pytest.raises(StreamError, match="batches of batches"):
        next(iter(DataLoader(MPIStreamDataset(4))))
    assert library.drawn == 0


class Padded(IterableDataset):
    def __init__(self, stream):
        self.stream = stream

    def __iter__(self):
        return iter(self.stream)


def test_samples_with_lengths_are_not_stacked(monkeypatch):
    monkeypatch.setattr("mpidata.trainer.join._trainer", None)
    trainer = make_trainer(FakeLibrary(make_plan_with_lengths()))
    stream, validation = MPIStreamDataset(), ValidationDataset(trainer, 4)
    for dataset in (stream, validation):
        with pytest.raises(StreamError, match=r"its own 'nodes'.*collate_fn=mpidata.PackedCollate\(stream.fields\)"):
            next(iter(DataLoader(dataset, batch_size=2)))
    assert iter(DataLoader(stream, batch_size=2, collate_fn=PackedCollate(stream.fields)))._dataset_fetcher
    assert iter(DataLoader(stream, batch_size=None))._dataset_fetcher
    assert iter(DataLoader(Padded(stream), batch_size=2))._dataset_fetcher  # its samples may have one shape
    trainer.closed = True


def test_drop_last_warns_about_the_dropped_samples(library):
    with pytest.warns(UserWarning, match="drop_last=True leaves out the last samples of each pass"):
        assert len(list(DataLoader(MPIStreamDataset(), batch_size=5, drop_last=True))) == 2


@pytest.mark.parametrize("size", [None, 4])
def test_accelerate_does_not_shard_the_samples_of_a_trainer(library, size):
    from accelerate.data_loader import prepare_data_loader

    stream = MPIStreamDataset(4 if size is None else None)
    loader = prepare_data_loader(DataLoader(stream, batch_size=size), num_processes=2, process_index=1)
    batches = list(loader)
    assert sum(len(batch["step"]) for batch in batches) == library.drawn >= 8
    assert all(len(batch["step"]) == 4 for batch in batches[:-1])


@pytest.mark.parametrize("arguments", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_shuffle_and_samplers_are_refused_by_torch(library, arguments):
    with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
        DataLoader(MPIStreamDataset(), **arguments)


def test_forked_workers_are_refused_with_the_reason(library):
    loader = DataLoader(MPIStreamDataset(), batch_size=2, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(StreamError) as caught:
        next(iter(loader))
    last = str(caught.value).strip().splitlines()[-1]
    assert last.startswith(
        "mpidata.errors.StreamError: num_workers=1 does not work with MPIStreamDataset: a DataLoader's"
    )
    assert "MPI does not survive a fork. Use num_workers=0" in last
    del caught
    gc.collect()  # torch waits for the worker when its iterator is freed: here, while the wait is short


def test_spawned_workers_are_refused(library):
    with pytest.raises(StreamError, match="num_workers > 0 does not work with MPIStreamDataset"):
        next(iter(DataLoader(MPIStreamDataset(), num_workers=1, multiprocessing_context="spawn")))


@pytest.mark.parametrize(("call", "how"), [(copy.copy, "copied"), (copy.deepcopy, "copied"), (pickle.dumps, "pickled")])
def test_stream_cannot_be_copied_or_pickled(library, call, how):
    with pytest.raises(StreamError, match=f"MPIStreamDataset cannot be {how}: its samples exist only once"):
        call(MPIStreamDataset())


def test_skipping_batches_of_a_stream_is_refused(library):
    from accelerate.data_loader import SkipDataLoader

    loader = SkipDataLoader(MPIStreamDataset(2), skip_batches=2, batch_size=None)
    with pytest.raises(StreamError, match="would drop the first 2 batches of this pass over the stream"):
        next(iter(loader))
    loader.skip_batches = 0
    assert len(list(loader)) == 6
