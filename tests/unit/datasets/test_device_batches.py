"""Batches of DataLoader and FileDataset on a stand-in device: as in CPU memory, counted at the position of the loop."""

import collections
import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from both_datasets import ROWS, SIZE, Back, network_of_both, write_rows
from fake_device import MODES, FakeDevice, pretend_that_torch_pins
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import WeightedRandomSampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.files.dataset import FileDataset
from mpidata.errors import StreamError
from mpidata.loading.transport import Kind
from mpidata.loading.turns import Turns
from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place

BATCHES = 6
MAKERS = {
    "loader": lambda folder, **more: DataLoader(range(ROWS), SIZE, **more),
    "loader, shared": lambda folder, **more: DataLoader(range(ROWS), SIZE, shuffle=True, share=True, **more),
    "loader, sampler": lambda folder, **more: DataLoader(range(ROWS), SIZE, sampler=Back(), **more),
    "files": lambda folder, **more: FileDataset(folder, SIZE, **more),
    "files, parts": lambda folder, **more: FileDataset(folder, SIZE, shuffle="parts", open_parts=2, **more),
}
RANDOM = {  # the second epoch depends on other draws from torch's generator, as by the loaders here
    "loader, random sampler": lambda folder, **more: DataLoader(
        range(ROWS), SIZE, sampler=WeightedRandomSampler(np.arange(1.0, ROWS + 1), ROWS), **more
    ),
}


@pytest.fixture(params=MODES)
def device(request, monkeypatch):
    device = FakeDevice(request.param, pins=True)
    choose = lambda asked, what, pin_memory: device if asked else None  # noqa: E731
    monkeypatch.setattr("mpidata.device.prefetch.choose_device", choose)
    return device


class Counted(list):
    """The batches that the job has counted; `sent`: messages to the loaders."""


@pytest.fixture
def counted(monkeypatch):
    counted = Counted()
    network = network_of_both(2)
    counted.sent = network.trainers[0].sent
    place = Place(network.trainers[0], 0, 1, 2, 2, 5, lambda name, thing: None, Turns(lambda: counted.append(1)))
    monkeypatch.setattr(job, "place", lambda: place)
    yield counted
    network.close()


@pytest.fixture(params=MAKERS)
def make(request, counted, tmp_path):
    write_rows(tmp_path)

    def made(**more):
        torch.manual_seed(7)
        return (MAKERS | RANDOM)[request.param](tmp_path, **more)

    return made


def rows_of(batch):
    return batch["data"] if isinstance(batch, dict) else batch


def train(device, batches, steps=None):
    """Return the rows that each step has read."""
    seen = []
    for batch in itertools.islice(batches, steps):
        device.step({"rows": rows_of(batch)}, lambda read: seen.append(read["rows"].tolist()))
        del batch
    device.finish()
    return seen


@pytest.mark.parametrize("prefetch", [1, 2])
def test_batches_on_the_device_equal_those_in_cpu_memory(make, device, prefetch):
    host = make()
    expected = [[rows_of(batch).tolist() for batch in host] for _ in range(2)]
    dataset = make(device="cuda", device_prefetch=prefetch)
    assert [train(device, dataset) for _ in range(2)] == expected


def test_complete_epoch_cancels_no_requests(make, device, counted):
    assert len(train(device, make(device="cuda"))) == BATCHES
    assert not [kind for _, _, kind, *_ in counted.sent if kind == Kind.FORGET]


def test_state_follows_the_position_of_the_loop(make, device, counted):
    host, dataset = make(), make(device="cuda")
    places = []
    for _ in host:
        counted_of = len(counted)
        places.append(place(host))
    counted.clear()
    for number, _ in enumerate(dataset):
        assert place(dataset) == places[number] and len(counted) == number + 1
    assert counted_of == len(counted) == BATCHES


def place(dataset):
    state = dataset.state_dict()
    return state["epoch"], state["batches"], state.get("ahead")


@pytest.mark.parametrize("make", MAKERS | RANDOM, indirect=True)
@pytest.mark.parametrize("steps", [1, 3, BATCHES - 1])
def test_state_resumes_with_batches_that_the_loop_has_not_received(make, device, steps):
    expected = [rows_of(batch).tolist() for batch in make()]
    dataset = make(device="cuda")
    assert train(device, dataset, steps) == expected[:steps]
    again = make(device="cuda")
    again.load_state_dict(dataset.state_dict())
    assert train(device, again) == expected[steps:]


def test_loop_after_an_abandoned_one_starts_the_next_epoch(make, device):
    host, dataset = make(), make(device="cuda")
    for _ in host:
        break
    expected = [rows_of(batch).tolist() for batch in host]
    train(device, dataset, 1)
    assert train(device, dataset) == expected


def test_the_next_batches_are_copied_while_the_loop_works(make, device):
    iterator = iter(make(device="cuda"))
    first, others = next(iterator), set()
    deadline = time.monotonic() + 10
    while not others and time.monotonic() < deadline:  # until a loader has made the second batch
        batch = next(iterator)
        others = {address for address in device.addresses if address not in (at(first), at(batch))}
    assert others


def at(batch):
    return rows_of(batch).data_ptr()


class Fails(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            raise ValueError("row 3 is broken")
        return {"x": torch.tensor([float(index)]), "name": f"row {index}"}


def test_dataset_errors_are_raised_in_batch_order(counted, device):
    iterator, seen = iter(DataLoader(Fails(), 1, device="cuda", prefetch_factor=8)), []
    for _ in range(3):
        batch = next(iterator)
        assert batch["name"] == [f"row {len(seen)}"]
        device.step({"x": batch["x"]}, lambda read: seen.append(read["x"].item()))
        device.finish()
        time.sleep(0.05)
    with pytest.raises(ValueError, match="row 3 is broken"):
        next(iterator)
    assert [batch["name"] for batch in iterator] == [["row 4"], ["row 5"]] and seen == [0, 1, 2]


Pair = collections.namedtuple("Pair", "x y")


class Odd:
    def __init__(self, batch):
        self.inside = torch.stack(batch)


def test_nested_batches_are_copied_and_unsupported_types_refused(counted, device):
    rows = [torch.arange(3.0) + i for i in range(4)]
    (batch,) = DataLoader(rows, 4, device="cuda", collate_fn=lambda b: Pair(torch.stack(b), [("a", torch.stack(b))]))
    assert type(batch) is Pair and device.has(batch.x) and device.has(batch.y[0][1]) and batch.y[0][0] == "a"
    with pytest.raises(StreamError, match="The batch has a Odd, whose tensors cannot be copied to a device ahead"):
        next(iter(DataLoader(rows, 4, device="cuda", collate_fn=Odd)))
    with pytest.raises(StreamError, match="a tensor of layout sparse_coo, which cannot be copied"):
        next(iter(DataLoader(rows, 4, device="cuda", collate_fn=lambda b: torch.stack(b).to_sparse())))


@pytest.mark.parametrize("make", ["loader, shared", "files"], indirect=True)
def test_nothing_is_copied_ahead_in_elastic_jobs(make, device, monkeypatch):
    expected = [rows_of(batch).tolist() for batch in make()]
    for of in ("data_loader.data_loader", "files.dataset"):
        living = SimpleNamespace(end=lambda: True)
        monkeypatch.setattr(f"mpidata.datasets.{of}.deal", lambda *rest, living=living, **more: living)
    iterator = iter(make(device="cuda"))
    assert iterator._prefetcher.ahead == 0 and train(device, iterator) == expected


def test_torch_dataloader_around_files_may_not_pin_memory(counted, device, tmp_path, monkeypatch):
    write_rows(tmp_path)
    pretend_that_torch_pins(monkeypatch)
    with pytest.raises(StreamError, match=r"DataLoader\(pin_memory=True\) cannot page-lock batches"):
        next(iter(TorchLoader(FileDataset(tmp_path, SIZE, device="cuda"), batch_size=None, pin_memory=True)))
