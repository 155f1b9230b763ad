"""Datasets on loaders inside frameworks' wrappers: the same batches as alone, or an error."""

import contextlib
import copy
import itertools
import pickle

import pytest
import torch
from accelerate import data_loader as of_accelerate
from accelerate.state import AcceleratorState, GradientState
from both_datasets import MAKERS, SIZE, network_of_both, write_rows
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from mpidata.datasets.files.dataset import FileDataset
from mpidata.errors import StreamError
from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place

FILES = [name for name in MAKERS if name.startswith("files")]


class Job:
    """A trainer whose datasets can be made again, as after a resume."""

    def __init__(self, network, monkeypatch, folder):
        self.states, self.folder = {}, folder
        self.network, self._monkeypatch = network, monkeypatch
        self.be(0, 1)

    def be(self, trainer, trainers):
        place = Place(self.network.trainers[trainer], trainer, trainers, 2, 2, 5, self.hold)
        self._monkeypatch.setattr(job, "place", lambda: place)

    def hold(self, name, thing):
        if (state := self.states.pop(type(thing).__name__, None)) is not None:
            thing.load_state_dict(state)

    def make(self, name):
        return MAKERS[name](self.folder)


@pytest.fixture
def here(monkeypatch, tmp_path):
    write_rows(tmp_path)
    network = network_of_both(2, trainers=2)
    yield Job(network, monkeypatch, tmp_path)
    network.close()
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def values(batch):
    return (batch["data"] if isinstance(batch, dict) else batch).tolist()


def epochs_of(loader, epochs):
    return [[values(batch) for batch in loader] for _ in range(epochs)]


@pytest.mark.parametrize("name", FILES)
def test_torch_dataloader_yields_the_batches_of_the_dataset(here, name):
    loader = DataLoader(here.make(name), batch_size=None)
    assert epochs_of(loader, 3) == epochs_of(here.make(name), 3)
    assert len(loader) == len(here.make(name)) == 6


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("batches", "ended"), [(0, False), (1, False), (4, False), (6, False), (6, True)])
def test_stateful_dataloader_resumes_with_the_rest_of_the_epoch(here, name, batches, ended):
    whole = epochs_of(here.make(name), 4)
    loader = StatefulDataLoader(here.make(name), batch_size=None)
    epochs_of(loader, 1)
    running = iter(loader)
    for _ in range(batches):
        next(running)
    assert not ended or next(running, None) is None
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    again = StatefulDataLoader(here.make(name), batch_size=None)
    again.load_state_dict(state)
    followed = list(itertools.chain.from_iterable(epochs_of(again, 2)))
    expected = [*whole[1][batches:], *whole[2], *whole[3]]
    assert followed == expected[: len(followed)] and len(followed) >= 6


@pytest.mark.parametrize("loader", [DataLoader, StatefulDataLoader])
def test_unsupported_uses_of_files_in_a_torch_dataloader_are_refused(here, loader):
    data = here.make("files")
    with pytest.raises(StreamError, match=r"around FileDataset\(batch_size=4\) would make batches of batches"):
        next(iter(loader(data, batch_size=2)))
    with pytest.raises(StreamError, match=r"num_workers=1 does not work with FileDataset"):
        next(iter(loader(data, batch_size=None, num_workers=1)))
    with pytest.raises(StreamError, match="cannot be pickled or copied"):
        copy.copy(data)


@pytest.mark.parametrize("name", ["loader, shared", "files"])
def test_set_epoch_may_not_leave_the_resumed_epoch_before_its_end(here, name):
    data = here.make(name)
    epochs_of(data, 2)
    running = iter(data)
    next(running)
    here.states[type(data).__name__] = data.state_dict()
    again = here.make(name)
    assert again.resumed == (2, 1)
    tell = again.sampler.set_epoch if name != "files" else again.set_epoch
    for epoch in (0, 3):
        with pytest.raises(
            StreamError, match=rf"set_epoch\({epoch}\): the job was resumed at epoch 2, batch 1 of this"
        ):
            tell(epoch)
    tell(2)
    assert [values(batch) for batch in again] == [values(batch) for batch in running]
    tell(0)
    assert epochs_of(again, 1) == epochs_of(here.make(name), 1)


OF_LIGHTNING = """
class _EvaluationLoop:
    def run(self, call, *arguments):
        return call(*arguments)
"""


@pytest.mark.parametrize("name", ["loader, shared", "files"])
def test_lightning_validation_starts_again_at_epoch_0_in_a_resumed_job(here, name):
    lightning = {"__name__": "lightning.loops"}
    exec(OF_LIGHTNING, lightning)
    loop = lightning["_EvaluationLoop"]()
    data = here.make(name)
    epochs_of(data, 1)
    here.states[type(data).__name__] = data.state_dict()
    again = here.make(name)
    assert again.resumed == (1, 0)
    loop.run(again.sampler.set_epoch if name != "files" else again.set_epoch, 0)
    assert epochs_of(again, 1) == epochs_of(here.make(name), 1)


@pytest.mark.parametrize("name", MAKERS)
def test_unused_call_of_iter_skips_no_epoch(here, name):
    torch.manual_seed(3)  # as the loaders seed it, which run in this process here
    expected = epochs_of(here.make(name), 2)
    torch.manual_seed(3)
    data = here.make(name)
    iter(data)
    assert epochs_of(data, 1) == expected[:1]
    iter(data)
    assert epochs_of(data, 1) == expected[1:]


@contextlib.contextmanager
def sharded(data, trainer, trainers):
    """As accelerate prepares `DataLoader(data, batch_size=None)` if dispatch_batches is False."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield of_accelerate.prepare_data_loader(
        DataLoader(data, batch_size=None), num_processes=trainers, process_index=trainer
    )


def test_accelerate_neither_shards_a_trainers_batches_nor_counts_epochs(here):
    here.be(1, 2)
    expected = epochs_of(FileDataset(here.folder, SIZE), 3)
    data = FileDataset(here.folder, SIZE)
    with sharded(data, 1, 2) as loader:
        assert epochs_of(loader, 1) == expected[:1]
        here.states["FileDataset"] = data.state_dict()
    with sharded(FileDataset(here.folder, SIZE), 1, 2) as loader:  # its count starts at 0 again
        assert epochs_of(loader, 2) == expected[1:]
        loader.set_epoch(1)
        assert epochs_of(loader, 2) == expected[1:]


def test_accelerate_divides_datasets_that_are_not_shared(here):
    whole = epochs_of(FileDataset(here.folder, SIZE, share=False), 1)[0]
    for trainer in range(2):
        here.be(trainer, 2)
        with sharded(FileDataset(here.folder, SIZE, share=False), trainer, 2) as loader:
            assert epochs_of(loader, 1)[0] == whole[trainer::2]


def test_a_dispatcher_of_accelerate_is_refused(here):
    here.be(0, 2)
    data = FileDataset(here.folder, SIZE)
    loader = of_accelerate.prepare_data_loader(DataLoader(data, batch_size=None), put_on_device=True)
    with pytest.raises(StreamError, match="divides the batches of one trainer among all, but each trainer has its own"):
        next(iter(loader))
