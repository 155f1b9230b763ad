"""mpidata.DataLoader yields the same batches as torch's DataLoader."""

import collections
import random
import threading

import numpy as np
import pytest
import torch
import torch.utils.data as torch_data

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.files.dataset import FileDataset
from mpidata.errors import StreamError
from mpidata.trainer import loader_access as job

Pair = collections.namedtuple("Pair", ["image", "label"])


class Images(torch_data.Dataset):
    """A class in the test's module, which the loaders of a job could not import."""

    def __init__(self, n=23, shape=(3, 40, 30)):
        self.n, self.shape = n, shape

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return torch.full(self.shape, float(index)), np.full(3, index), {"name": f"image {index}", "n": index}


class Many(Images):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Wrong(Images):
    def __getitem__(self, index):
        if index == 5:
            raise LookupError(f"no image {index}")
        return torch.tensor(index)


def same(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
        assert ours.stride() == theirs.stride() or not theirs.is_contiguous()
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in theirs)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    else:
        assert type(ours) is type(theirs) and ours == theirs
    return True


SETTINGS = {
    "as it is": {},
    "batches": {"batch_size": 4},
    "drop last": {"batch_size": 4, "drop_last": True},
    "no batches": {"batch_size": None},
    "a sampler": {"batch_size": 3, "sampler": [3, 1, 4, 1, 5]},
    "a batch sampler": {"batch_sampler": [[1, 2], [3], [4, 5, 6]]},
    "collate": {"batch_size": 5, "collate_fn": lambda samples: Pair(samples[0][0][:, ::2], [s[2] for s in samples])},
    "channels last": {
        "batch_size": 5,
        "collate_fn": lambda s: torch.stack([a[0] for a in s]).to(memory_format=torch.channels_last),  # strides stay
    },
    "as they come": {"batch_size": 5, "collate_fn": list},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("dataset", [Images(), Many()], ids=["getitem", "getitems"])
def test_batches_equal_those_of_torch(job_of, dataset, settings):
    job_of(loaders=3)
    ours, theirs = DataLoader(dataset, **settings), torch_data.DataLoader(dataset, **settings)
    assert isinstance(ours, torch_data.DataLoader) and len(ours) == len(theirs)
    assert (ours.batch_size, ours.drop_last) == (theirs.batch_size, theirs.drop_last)
    for _ in range(2):
        assert same(list(ours), list(theirs))


@pytest.mark.parametrize(
    "tensor",
    [torch.tensor(3.5), torch.empty(0, 3), torch.ones(5000, dtype=torch.bfloat16), torch.ones(9, dtype=torch.bool)]
    + [torch.arange(6000).view(2, 3000).T, torch.ones(3000, dtype=torch.complex64), torch.eye(3).to_sparse()],
)
def test_any_tensor_is_transferred_unchanged(job_of, tensor):
    job_of()
    (ours,) = DataLoader([tensor], batch_size=None)
    assert ours.dtype == tensor.dtype and torch.equal(ours.to_dense(), tensor.to_dense())


def test_received_tensors_are_writable_without_a_warning(job_of, recwarn):
    job_of()
    image = next(iter(DataLoader(Images(), batch_size=4)))[0]
    image += 1.0
    assert float(image[0, 0, 0, 0]) == 1.0 and not recwarn.list


def test_shuffled_epochs_are_complete_differ_and_repeat_with_the_seed(job_of):
    job_of()

    def epochs(seed):
        loader = DataLoader(range(50), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(seed))
        return [torch.cat(list(loader)).tolist() for _ in range(2)]

    first, second = epochs(1)
    assert sorted(first) == sorted(second) == list(range(50)) and first != second
    assert epochs(1) == [first, second] and epochs(2)[0] != first
    loader = DataLoader(range(50), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(1))
    loader.set_epoch(1)
    assert torch.cat(list(loader)).tolist() == second


def test_exceptions_carry_the_loaders_traceback_and_the_next_batch_follows(job_of):
    job_of()
    batches = iter(DataLoader(Wrong(), batch_size=4))
    next(batches)
    with pytest.raises(LookupError, match=r"(?s)in loader [01].*Traceback.*no image 5"):
        next(batches)
    assert next(batches).tolist() == [8, 9, 10, 11]


def test_exceptions_that_cannot_be_pickled_are_raised(job_of):
    job_of()

    class Bad(Images):
        def __getitem__(self, index):
            class Local(Exception):
                lock = __import__("threading").Lock()

            raise Local("locked")

    with pytest.raises(RuntimeError, match="locked"):
        next(iter(DataLoader(Bad())))


class Random(Images):
    def __getitem__(self, index):
        return torch.tensor([random.random(), np.random.rand(), float(torch.rand(()))], dtype=torch.float64)


def test_random_numbers_depend_only_on_seed_epoch_batch_and_trainer(job_of):
    def drawn(loaders=1, trainer=0, seed=3):
        job_of(loaders=loaders, trainers=2).be(trainer)
        loader = DataLoader(Random(), batch_size=4, generator=torch.Generator().manual_seed(seed))
        return [torch.cat(list(loader)).flatten().tolist() for _ in range(2)]

    one = drawn()
    assert drawn(loaders=3) == one
    everything = one[0] + one[1] + drawn(trainer=1)[0] + drawn(seed=4)[0]
    assert len(set(everything)) == len(everything) == 4 * 23 * 3


class Told(Images):
    def __getitem__(self, index):
        info = torch_data.get_worker_info()
        return info.id, info.num_workers, type(info.dataset).__name__, info.dataset.n


def test_get_worker_info_and_worker_init_fn_work_on_loaders(job_of):
    job_of(loaders=2)

    def init(worker):
        torch_data.get_worker_info().dataset.n = 100 + worker

    seen = {item for batch in DataLoader(Told(), batch_size=2, collate_fn=list, worker_init_fn=init) for item in batch}
    assert seen == {(0, 2, "Told", 100), (1, 2, "Told", 101)}


class Slow(Images):
    may_end = threading.Event()

    def __getitem__(self, index):
        if index == 0:
            Slow.may_end.wait(20)
        return index


def test_in_order_false_yields_the_first_ready_batch_and_timeout_raises(job_of, threads):
    job_of(loaders=2, program=threads)
    batches = iter(DataLoader(Slow(), in_order=False))
    first = next(batches).tolist()
    Slow.may_end.set()
    assert first != [0] and sorted([*first, *torch.cat(list(batches)).tolist()]) == list(range(23))
    Slow.may_end.clear()
    with pytest.raises(RuntimeError, match="timed out after 0.05 seconds"):
        next(iter(DataLoader(Slow(), timeout=0.05)))
    Slow.may_end.set()


class Endless(torch_data.IterableDataset):
    def __iter__(self):
        return iter([1])


REFUSED = {
    "IterableDataset": ((Endless(),), {}),
    "cannot be pickled": (([__import__("threading").Lock()],), {}),
    "batch_size=0": ((Images(), 0), {}),
    "prefetch_factor=0": ((Images(),), {"prefetch_factor": 0}),
    "generator=3 is not a torch.Generator": ((Images(),), {"generator": 3}),
    "share=True needs batch_size": ((Images(), None), {"share": True}),
    "share=True divides": ((Images(),), {"share": True, "sampler": [1]}),
    "does not name a function": (("module",), {}),
}


@pytest.mark.parametrize(("sentence", "arguments"), REFUSED.items())
def test_unsupported_arguments_are_refused(job_of, sentence, arguments):
    job_of()
    with pytest.raises(StreamError, match=sentence):
        DataLoader(*arguments[0], **arguments[1])


def test_job_is_joined_before_arguments_are_refused(monkeypatch):
    def join():
        raise StreamError("joined")

    monkeypatch.setattr(job, "place", join)
    with pytest.raises(StreamError, match="joined"):
        DataLoader(Endless())
    with pytest.raises(StreamError, match="joined"):
        FileDataset("there/is/no/*.npy", 1)


def test_worker_arguments_are_accepted_with_a_warning(job_of):
    job_of()
    with pytest.warns(UserWarning, match=r"num_workers=4, persistent_workers=True: no effect"):
        loader = DataLoader(Images(), num_workers=4, persistent_workers=True, prefetch_factor=3)
    assert loader.prefetch_factor == 3
