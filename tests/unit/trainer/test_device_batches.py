"""Batches of a stream on a stand-in device: each complete, none lost, counted when the loop gets it."""

import gc
import itertools
from types import SimpleNamespace

import pytest
import torch
from fake_device import MODES, POISON, FakeDevice, OutOfMemory, pretend_that_torch_pins
from fake_library import FakeLibrary, make_plan, make_trainer, numbers
from torch.utils.data import DataLoader

import mpidata
from mpidata.errors import StreamError
from mpidata.native.constants import CHECKPOINT
from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.trainer import join as job
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.replica.replica import Replica

BATCHES = 12


class Library(FakeLibrary):
    """Has a few pages, whose contents are lost on return, and blocks while all are in use."""

    def __init__(self, pages=3, **rest):
        super().__init__(samples=2 * BATCHES, **rest)
        self.n_pages = pages
        self.in_use = self.most_in_use = self.draws = self.waits = 0
        self.checkpoint_at = None

    def _refuses(self, timeout):
        if self.checkpoint_at == self.draws:
            return AGAIN if timeout < 0 else CHECKPOINT
        if self.pages is not None and self.in_use == self.n_pages:
            assert timeout < 0, "The loop waits for a page that it has itself."
            return AGAIN
        status = super()._refuses(timeout)
        self.draws += not status
        return status

    def mpidata_trainer_draw_page(self, size, address, page, timeout):
        status = super().mpidata_trainer_draw_page(size, address, page, timeout)
        self.in_use += self.pages is not None and not status
        self.most_in_use = max(self.most_in_use, self.in_use)
        return status

    def mpidata_trainer_give_back(self, page):
        self.lent[page].fill(POISON)
        self.in_use -= 1
        return super().mpidata_trainer_give_back(page)


@pytest.fixture(params=["copied", "pages"])
def library(request, monkeypatch):
    monkeypatch.setattr(job, "_trainer", None)
    library = Library()
    if request.param == "pages":
        library.pages = []
        monkeypatch.setattr("mpidata.trainer.batches.pages.buffer_is_page_locked", lambda plan: True)
    trainer = make_trainer(library)
    yield library
    trainer.closed = True


@pytest.fixture(params=MODES)
def device(request, monkeypatch):
    device = FakeDevice(request.param)
    choose = lambda asked, what, pin_memory: device if asked else None  # noqa: E731
    monkeypatch.setattr("mpidata.trainer.batches.device_prefetch.choose_device", choose)
    return device


def train(device, batches, seen, steps=None):
    for batch in itertools.islice(batches, steps):
        device.step(batch, lambda read: seen.append(numbers(read)))
        del batch


EXPECTED = [[2 * n, 2 * n + 1] for n in range(BATCHES)]


@pytest.mark.parametrize("prefetch", [1, 2])
def test_each_step_gets_its_complete_batch(library, device, prefetch):
    library.n_pages, seen, ahead = 4, [], []
    for batch in MPIStreamDataset(2, device="cuda", device_prefetch=prefetch):
        device.step(batch, lambda read: seen.append(numbers(read)))
        ahead.append(library.ahead)
    device.finish()
    assert seen == EXPECTED
    assert ahead == [min(prefetch, BATCHES - number) for number in range(1, BATCHES + 1)]


def test_all_tensors_of_a_batch_are_on_the_device(library, device):
    batch = next(iter(MPIStreamDataset(2, device="cuda")))
    assert all(map(device.has, batch.values()))
    names = ["temperature", "scalar", "parameters", "time", "step", "simulation"]
    assert list(batch) == names
    device.copies.run_to(device.copies.given)
    assert batch["time"].tolist() == [0, 0.5] and batch["parameters"].tolist() == [[0, 0], [1, -1]]
    assert batch["scalar"].dtype == torch.int64 and batch["temperature"].shape == (2, 2, 3)


@pytest.mark.parametrize("pages", [1, 2])
def test_buffer_of_one_or_two_pages_delivers_all_batches(library, device, pages):
    library.n_pages, seen = pages, []
    train(device, MPIStreamDataset(2, device="cuda"), seen)
    device.finish()
    assert seen == EXPECTED and library.most_in_use <= pages


@pytest.mark.parametrize("library", ["copied"], indirect=True)
def test_pages_that_are_not_page_locked_are_copied_in_cpu_memory(library, device):
    library.pages, seen = [], []
    train(device, MPIStreamDataset(2, device="cuda"), seen)
    device.finish()
    assert seen == EXPECTED and not library.lent


def test_page_is_returned_after_its_copy_even_if_its_batch_is_kept(library, device):
    stream = iter(MPIStreamDataset(2, device="cuda"))
    held = [next(stream) for _ in range(4)]
    device.copies.run_to(device.copies.given)
    held.append(next(stream))
    assert library.in_use <= 1  # the batch that is copied now
    assert [numbers(batch) for batch in held[:4]] == EXPECTED[:4]


def test_batch_is_counted_when_the_loop_receives_it(library, device):
    stream = MPIStreamDataset(2, device="cuda", device_prefetch=2)
    called = []
    stream.when_drawn(2, lambda: called.append(job.join().drawn))
    for number, _ in enumerate(stream, 1):
        assert stream.state_dict() == {"batch": number} and job.join().drawn == number
        assert library.draws - library.ahead == number
        assert called == [2] * (number >= 2)


@pytest.mark.parametrize("anew", [False, True])
def test_leaving_the_loop_loses_no_batches(library, device, anew):
    def make():
        return MPIStreamDataset(2, device="cuda")

    stream, seen = make(), []
    for steps in (1, 3, 2, BATCHES - 7):
        train(device, stream, seen, steps)
        assert not stream.over
        if anew:
            del stream
            gc.collect()
            stream = make()
    train(device, stream, seen)
    device.finish()
    assert seen == EXPECTED and stream.over


def test_exception_in_the_loop_loses_no_batches(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda"), []
    with pytest.raises(ZeroDivisionError):
        for batch in stream:
            device.step(batch, lambda read: seen.append(numbers(read)))
            1 / (len(seen) == 0 and job.join().drawn < 3)
    train(device, stream, seen)
    device.finish()
    assert seen == EXPECTED


def test_each_epoch_continues_where_the_last_one_stopped(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda", batches_per_epoch=5), []
    epochs = 0
    while not stream.over:
        train(device, stream, seen)
        epochs += 1
    device.finish()
    assert seen == EXPECTED and epochs == 3 and library.stopped == []


def test_leaving_the_loop_is_noticed_immediately(library, device):
    for _ in MPIStreamDataset(2, device="cuda"):
        assert not job.join()._pace().outside
        break
    assert library.ahead == 1 and job.join()._pace().outside


def test_dataloaders_of_torch_and_accelerate_lose_no_batches(library, device):
    from accelerate.data_loader import DataLoaderShard

    stream, seen = MPIStreamDataset(2, device="cuda"), []
    for steps in (1, 2):
        train(device, iter(DataLoaderShard(stream, batch_size=None)), seen, steps)
    train(device, DataLoader(stream, batch_size=None), seen)
    device.finish()
    assert seen == EXPECTED


@pytest.mark.parametrize("at", [1, 2, 5, BATCHES])
@pytest.mark.parametrize("prefetch", [1, 2])
def test_checkpoint_waits_until_the_loop_has_used_all_drawn_batches(library, device, monkeypatch, at, prefetch):
    stream, seen, taken = MPIStreamDataset(2, device="cuda", device_prefetch=prefetch), [], []

    def take():
        taken.append((library.draws, library.ahead, stream.state_dict()["batch"]))
        library.checkpoint_at = None

    monkeypatch.setattr(job.join().checkpoints, "take", take)
    library.checkpoint_at = at
    train(device, stream, seen)
    device.finish()
    assert taken == [(at, 0, at)] and seen == EXPECTED


def test_stop_ends_the_loop_after_the_drawn_batches(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda"), []
    batches = iter(stream)
    train(device, batches, seen, 2)
    library.stopped.append((0, "SIGTERM"))
    train(device, batches, seen)
    device.finish()
    assert seen == EXPECTED[:3] and stream.stopped and stream.over


def test_ctrl_c_is_raised_after_the_drawn_batches(library, device, tmp_path):
    job.join().plan = make_plan(run=tmp_path)
    batches = iter(MPIStreamDataset(2, device="cuda"))
    next(batches)
    (tmp_path / "stop").write_text("SIGINT without-checkpoint\n")
    library.stopped.append((0, "Ctrl-C"))
    next(batches)
    with pytest.raises(KeyboardInterrupt):
        next(batches)


def test_job_errors_are_raised_after_the_drawn_batches(library, device):
    batches = iter(MPIStreamDataset(2, device="cuda"))
    next(batches)
    library.draw_status = 9
    next(batches)
    with pytest.raises(Exception, match="The sentence"):
        next(batches)


def test_a_batch_that_does_not_fit_on_the_device_is_drawn_and_lost(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda"), []
    batches = iter(stream)
    train(device, batches, seen, 1)
    device.fails_after = 0
    train(device, batches, seen, 1)
    device.fails_after = None
    with pytest.raises(OutOfMemory):
        next(batches)
    assert library.draws - library.ahead == job.join().drawn == 3
    train(device, batches, seen)
    device.finish()
    assert seen == EXPECTED[:2] + EXPECTED[3:] and library.ahead == 0


def test_closed_stream_yields_no_more_batches(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda"), []
    train(device, stream, seen, 2)
    stream.close()
    assert stream.over
    assert library.stopped == [(0, "the script called stream.close() after batch 2, before the stream was over")]
    with pytest.raises(StreamError, match="The stream is closed"):
        next(iter(stream))


def test_copies_are_done_before_the_trainer_leaves_the_job(library, device):
    stream = iter(MPIStreamDataset(2, device="cuda"))
    next(stream)
    job.join().close()
    assert library.in_use == 0 and device.copies.done == device.copies.given and library.calls[-1] == "close"


def test_starved_stream_resumes_when_samples_arrive(library, device):
    stream, seen = MPIStreamDataset(2, device="cuda"), []
    for batch in stream:
        device.step(batch, lambda read: seen.append(numbers(read)))
        library.again = 3
    device.finish()
    assert seen == EXPECTED


@pytest.mark.parametrize("library", ["copied"], indirect=True)
def test_gradient_weight_belongs_to_the_current_batch(library, device):
    library.shares = [(2, 2), (4, 2), (6, 2)]
    stream = MPIStreamDataset(global_batch_size=8, device="cuda")
    weights = []
    for batch in stream:
        assert len(batch["step"]) == library_size(weights)
        weights.append(job.join().share.take())
    assert weights == [0.5, 1.0, 1.5]


def library_size(weights):
    return (2, 4, 6)[len(weights)]


@pytest.mark.parametrize("library", ["copied"], indirect=True)
def test_weights_of_samples_are_on_the_device(library, device):
    trainer = job.join()
    trainer.plan = library.plan = make_plan(weights=True)
    batch = next(iter(MPIStreamDataset(2, device="cuda")))
    assert device.has(batch["weight"]) and device.has(batch["parameters"])
    device.copies.run_to(device.copies.given)
    assert batch["weight"].tolist() == [0, -1] and batch["parameters"].tolist() == [[0], [1]]


@pytest.mark.parametrize("library", ["copied"], indirect=True)
def test_validation_is_measured_on_the_device(library, device):
    library.n_validation = 5
    stream = MPIStreamDataset(2, device="cuda")

    def measure(batch):
        assert all(map(device.has, batch.values()))
        device.copies.run_to(device.copies.given)
        return batch["temperature"].sum()

    assert stream.validate(measure, batch_size=2).tolist() == [6 * (0 + 1 + 2 + 3 + 4)]
    assert not device.has(stream.validation()[0]["temperature"])


@pytest.mark.parametrize("library", ["copied"], indirect=True)
@pytest.mark.parametrize("arguments", [{}, {"device": None}, {"device": "cpu"}, {"device": torch.device("cpu", 0)}])
def test_stream_without_a_device_draws_nothing_ahead(library, arguments):
    stream = MPIStreamDataset(2, **arguments)
    assert [numbers(batch) for batch in stream] == EXPECTED
    assert library.most_ahead == 0 and stream._prefetcher is None


def test_arguments_incompatible_with_a_device_are_refused(library, device):
    with pytest.raises(StreamError, match="device='cuda' needs batch_size: batches are copied"):
        MPIStreamDataset(device="cuda")
    with pytest.raises(StreamError, match="device_prefetch=3 batches cannot be copied ahead of the loop. Give 1 or 2."):
        MPIStreamDataset(2, device="cuda", device_prefetch=3)
    stream = MPIStreamDataset(2, device="cuda")
    MPIStreamDataset(2, device="cuda")
    for other in ({}, {"device": "cuda", "device_prefetch": 2}, {"device": "cuda", "constants": "batch"}):
        with pytest.raises(StreamError, match="another dataset has device='cuda', device_prefetch=1.* same arguments"):
            MPIStreamDataset(2, **other)
    with pytest.raises(StreamError, match="graphs: the batches of the stream go to a device"):
        mpidata.graphs(stream, x="temperature", edge_index="scalar")
    loader = DataLoader(stream, batch_size=None)
    loader.__dict__["pin_memory"] = True
    with pytest.MonkeyPatch.context() as patched:
        pretend_that_torch_pins(patched)
        with pytest.raises(StreamError, match=r"DataLoader\(pin_memory=True\) cannot page-lock batches"):
            next(iter(loader))


@pytest.mark.parametrize("library", ["copied"], indirect=True)
@pytest.mark.parametrize("case", ["elastic", "replica"])
def test_elastic_jobs_and_replicas_draw_nothing_ahead(library, device, case, monkeypatch):
    if case == "elastic":
        monkeypatch.setattr(job.join(), "members", SimpleNamespace(drawn=None))
    else:
        monkeypatch.setattr(job.join(), "replica", Replica(size=2))
    seen = []
    for batch in MPIStreamDataset(2, device="cuda"):
        device.step(batch, lambda read: seen.append(numbers(read)))
        assert library.ahead == 0 and library.draws == job.join().drawn
    device.finish()
    assert seen == EXPECTED
