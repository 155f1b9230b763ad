"""The calls of a script work outside a job as within one, in this process."""

import random

import accelerate
import numpy as np
import pytest
import torch
from fake_device import FakeDevice

import mpidata
from mpidata.datasets.data_loader import standalone_loader
from mpidata.errors import StreamError
from mpidata.run import job_environment as outside
from mpidata.trainer import loader_access as job


class Images(torch.utils.data.Dataset):
    def __init__(self, n=23):
        self.n, self.asked = n, 0

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        self.asked += 1
        return torch.tensor(index), torch.rand(())


def make():
    return Images(7)


@pytest.fixture(autouse=True)
def _no_job(monkeypatch):
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    job._local_loaders.cache_clear()


def batches(loader):
    return [[part.tolist() for part in batch] for batch in loader]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"batch_size": 4, "shuffle": True},
        {"batch_size": 4, "drop_last": True, "sampler": range(0, 20, 2)},
        {"batch_size": None},
        {"batch_sampler": [[1, 2], [3]]},
        {"batch_size": 5, "shuffle": True, "collate_fn": lambda samples: [torch.stack([of for of, _ in samples])]},
    ],
)
def test_dataloader_yields_the_same_batches_as_torch(arguments):
    torch.manual_seed(3)
    expected = [batches(torch.utils.data.DataLoader(Images(), **arguments)) for _ in range(2)]
    after = torch.rand(3)
    torch.manual_seed(3)
    more = {"num_workers": 3, "persistent_workers": True, "prefetch_factor": 4, "timeout": 60, "in_order": False}
    loader = mpidata.DataLoader(Images(), **arguments, **more)
    assert isinstance(loader, mpidata.DataLoader) and isinstance(loader, torch.utils.data.DataLoader)
    assert [batches(mpidata.DataLoader(Images(), **arguments, **more)) for _ in range(2)] == expected
    assert torch.equal(torch.rand(3), after)


def test_invalid_generator_is_refused():
    with pytest.raises(mpidata.StreamError, match="generator=3 is not a torch.Generator. Give one, for example torch"):
        mpidata.DataLoader(Images(), generator=3)


def test_dataset_is_used_directly_or_made_by_a_named_function():
    images = Images()
    list(mpidata.DataLoader(images, batch_size=5))
    assert images.asked == 23
    assert len(list(mpidata.DataLoader(f"{__name__}:make", batch_size=2))) == 4


@pytest.mark.parametrize("shuffle", [False, True])
def test_processes_of_a_group_share_each_epoch(monkeypatch, shuffle):
    epochs = []
    for rank in range(2):
        monkeypatch.setattr(standalone_loader, "group_place", lambda rank=rank: (rank, 2))
        loader = mpidata.DataLoader(Images(), batch_size=4, shuffle=shuffle, share=True)
        epochs.append([[index for batch, _ in batches(loader) for index in batch] for _ in range(2)])
        assert len(loader) == 3 and loader.batch_size == 4
    for of_one, of_other in zip(*epochs, strict=True):
        assert sorted(of_one + of_other) == list(range(23))
    assert (epochs[0][0] == epochs[0][1]) != shuffle  # another order in each epoch


class Noisy(Images):
    """Draws from each generator of the process."""

    def __getitem__(self, index):
        return index, torch.rand(()).item(), random.random(), np.random.rand()


def test_process_group_created_later_shares_each_epoch(monkeypatch):
    loaders = []
    for _ in range(2):
        monkeypatch.setattr(standalone_loader, "group_place", lambda: (0, 1))
        loaders.append(mpidata.DataLoader(Images(), batch_size=4, shuffle=True, share=True))
    seen = []
    for rank, loader in enumerate(loaders):
        monkeypatch.setattr(standalone_loader, "group_place", lambda rank=rank: (rank, 2))
        assert len(loader) == 3
        seen += [index for images, _ in batches(loader) for index in images]
    assert sorted(seen) == list(range(23))


def test_accelerate_leaves_a_shared_dataloader_unchanged(monkeypatch):
    monkeypatch.setattr(standalone_loader, "group_place", lambda: (1, 2))
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    loader = mpidata.DataLoader(Images(), batch_size=4, share=True)
    assert accelerator.prepare(loader) is loader
    state, sizes, ends = accelerate.state.GradientState(), [], []
    for images, _ in loader:
        sizes.append(len(images))
        ends.append((state.end_of_dataloader, state.remainder))
    assert sizes == [4, 4, 4] and ends == [(False, 7), (False, 7), (True, 7)]  # a 24th row fills the last batch
    assert not state.in_dataloader
    plain = mpidata.DataLoader(Images(), batch_size=4)
    assert not plain._is_accelerate_prepared and accelerator.prepare(plain) is not plain
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    accelerate.state.GradientState._reset_state()


def draw():
    return torch.rand(()).item(), random.random(), np.random.rand()


def seed_all(seed):
    torch.manual_seed(seed), random.seed(seed), np.random.seed(seed)


@pytest.mark.parametrize("batches_before", [0, 2, 6])
@pytest.mark.parametrize("how", ["own", "generator", "share", "sampler"])
def test_dataloader_resumes_from_its_state(how, batches_before):
    more = {
        "own": lambda: {"shuffle": True},
        "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(8)},
        "share": lambda: {"shuffle": True, "share": True},
        "sampler": lambda: {"sampler": torch.utils.data.RandomSampler(range(23), True)},
    }[how]
    seed_all(5)
    first = mpidata.DataLoader(Noisy(), batch_size=4, **more())
    list(first)
    rest = iter(first)
    for _ in range(batches_before):
        next(rest), draw()  # as a training step does
    state = first.state_dict()
    expected = [batches(rest), batches(first), draw()] if batches_before != 6 else [batches(first), draw()]
    seed_all(6)
    second = mpidata.DataLoader(Noisy(), batch_size=4, **more())
    second.load_state_dict(state)
    assert second.resumed == (1, batches_before) if batches_before != 6 else (2, 0)
    if batches_before == 2:
        iter(second)  # as Lightning does to check that it can
    assert [*(batches(second) for _ in expected[1:]), draw()] == expected
    with pytest.raises(StreamError, match="load_state_dict: this is not a state of"):
        second.load_state_dict({})


def test_sharing_without_a_batch_size_is_refused():
    with pytest.raises(StreamError, match="share=True needs batch_size"):
        mpidata.DataLoader(Images(), batch_size=None, share=True)


def test_files_are_read_in_this_process(tmp_path):
    for number in range(3):
        np.savez(tmp_path / f"{number}.npz", x=np.arange(8) + 8 * number, y=np.zeros((8, 2)))
    before = torch.get_rng_state(), random.getstate()
    data = mpidata.FileDataset(tmp_path / "*.npz", batch_size=5)
    for _ in range(2):
        found = [batch["x"].tolist() for batch in data]
        assert len(found) == len(data) == 5 and sorted(sum(found, [])) == list(range(24)) != sum(found, [])
    for _ in data:  # a pass that is left early
        break
    state = data.state_dict()
    rest = [batch["x"].tolist() for batch in mpidata.FileDataset(tmp_path / "*.npz", batch_size=5, shuffle=None)]
    assert sum(rest, []) == list(range(24))
    again = mpidata.FileDataset(tmp_path / "*.npz", batch_size=5)
    again.load_state_dict(state)
    assert len(list(again)) == 4
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()
    with pytest.raises(StreamError, match="nothing"):
        mpidata.FileDataset(tmp_path / "nothing*.npz", batch_size=5)


def test_files_are_shared_by_the_processes_of_a_group(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.arange(21))
    found = []
    for rank in range(2):
        monkeypatch.setattr(job, "group_place", lambda rank=rank: (rank, 2))
        found += [row for batch in mpidata.FileDataset(tmp_path / "a.npy", 4) for row in batch["data"].tolist()]
    assert sorted(found) == list(range(21))


def test_reports_and_registered_objects_are_only_checked():
    mpidata.report(loss=torch.tensor(1.0))
    with pytest.raises(StreamError, match="is not a number"):
        mpidata.report(loss="high")
    assert mpidata.register(model=torch.nn.Linear(1, 1)) is None
    with pytest.raises(StreamError, match="lacks state_dict"):
        mpidata.register(model=3)


@pytest.mark.parametrize(("rank", "lines"), [(None, 1), ("0", 1), ("1", 0)])
def test_first_rank_prints_one_notice_outside_a_job(monkeypatch, capfd, rank, lines):
    outside.say_no_job.cache_clear()
    monkeypatch.setenv("RANK", rank) if rank else monkeypatch.delenv("RANK", raising=False)
    mpidata.report(loss=1.0)
    mpidata.report(loss=1.0)
    told = capfd.readouterr()
    assert told.err.count("\n") == lines and told.out == ""
    assert not lines or "mpidata: This process is not part of a job (MPIDATA_RUN is not set)" in told.err


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: mpidata.report(loss=1.0),
        lambda rows: mpidata.register(model=torch.nn.Linear(1, 1)),
        lambda rows: mpidata.DataLoader(Images()),
        lambda rows: mpidata.FileDataset(rows, 2),
    ],
    ids=["report", "register", "DataLoader", "FileDataset"],
)
def test_any_first_call_prints_the_notice(monkeypatch, capfd, tmp_path, call):
    np.save(tmp_path / "rows.npy", np.arange(4))
    outside.say_no_job.cache_clear()
    monkeypatch.delenv("RANK", raising=False)
    call(tmp_path / "rows.npy")
    assert capfd.readouterr().err.count("is not part of a job") == 1


def test_in_job(monkeypatch):
    assert mpidata.in_job() is False
    monkeypatch.setenv("MPIDATA_RUN", "/run")
    assert mpidata.in_job() is True


def test_batches_are_moved_to_the_device_as_in_a_job(monkeypatch, tmp_path):
    device = FakeDevice(pins=True)
    monkeypatch.setattr("mpidata.device.prefetch.choose_device", lambda asked, *_, **__: device if asked else None)
    (tmp_path / "rows.csv").write_text("x\n" + "".join(f"{row}\n" for row in range(23)))
    made = [lambda **more: mpidata.DataLoader(Noisy(), batch_size=4, shuffle=True, **more)]
    made.append(lambda **more: mpidata.FileDataset(tmp_path, 4, **more))
    for make_one in made:
        seed_all(5)
        expected, states = [], []
        loader = make_one()
        for batch in loader:
            expected.append(as_dict(batch))
            states.append(str(loader.state_dict()))
        seed_all(5)
        loader, seen = make_one(device="cuda"), []
        for number, batch in enumerate(loader):
            assert str(loader.state_dict()) == states[number]
            device.step(as_dict(batch), seen.append)
            del batch
        device.finish()
        assert str(seen) == str(expected)


def as_dict(batch):
    return batch if isinstance(batch, dict) else {str(place): part for place, part in enumerate(batch)}
