"""Batches that are copied ahead of the loop, on a stand-in device that works at the worst moment."""

import gc

import pytest
import torch
from fake_device import MODES, FakeDevice, OutOfMemory

from mpidata.device.prefetch import Prefetcher
from mpidata.trainer.batches.pool import MemoryPool

BATCHES, ROWS = 12, 4


class Source:
    """Batches in memory that is reused as soon as it is released; batch n has n in each element."""

    def __init__(self, batches=BATCHES):
        self.pool = MemoryPool()
        self.batches, self.made, self.there = batches, 0, batches
        self.fails = ()

    def make(self):
        number = self.made
        self.made += 1

        def batch():
            if number in self.fails:
                raise ValueError(f"no batch {number}")
            rows = torch.from_numpy(self.pool.take(4 * ROWS)).view(torch.float32)
            return {
                "rows": rows.fill_(number),
                "number": torch.from_numpy(self.pool.take(8)).view(torch.int64).fill_(number),
            }

        return number, batch

    def wait(self):
        if self.made == self.batches:
            raise StopIteration
        self.there = max(self.there, self.made + 1)
        return self.make()

    def ready(self):
        return self.make() if self.made < min(self.there, self.batches) else None


def trained(device, prefetcher, source, steps=BATCHES):
    """Return what a loop of `steps` steps has read on the device, and the numbers of its batches in order."""
    read, numbers = [], []
    for _ in range(steps):
        number, give = prefetcher.next(source.wait, source.ready)
        batch = give()
        del give
        numbers.append(number)
        device.step(batch, lambda seen: read.append((seen["rows"].tolist(), seen["number"].item())))
        del batch
    device.finish()
    return read, numbers


@pytest.mark.parametrize("pins", [False, True])
@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_each_step_gets_its_complete_batch(mode, ahead, pins):
    device, source = FakeDevice(mode, pins), Source()
    read, numbers = trained(device, Prefetcher(device, ahead), source)
    assert read == [([float(n)] * ROWS, n) for n in range(BATCHES)] and numbers == list(range(BATCHES))


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_exactly_n_batches_are_fetched_ahead(ahead):
    device, source = FakeDevice(), Source()
    prefetcher = Prefetcher(device, ahead)
    for number in range(BATCHES):
        assert prefetcher.next(source.wait, source.ready)[0] == number
        assert source.made == min(number + 1 + ahead, BATCHES)
        assert prefetcher.waiting == (ahead > 0 and number + 1 < BATCHES)
    with pytest.raises(StopIteration):
        prefetcher.next(source.wait, source.ready)


def test_fetching_ahead_does_not_wait_for_batches():
    device, source = FakeDevice(), Source()
    prefetcher = Prefetcher(device, 1)
    source.there = 1
    assert prefetcher.next(source.wait, source.ready)[0] == 0
    assert source.made == 1 and not prefetcher.waiting
    source.there = 3
    assert prefetcher.next(source.wait, source.ready)[0] == 1
    assert source.made == 3 and prefetcher.waiting


def test_host_waits_for_no_copy_if_the_device_keeps_up():
    device, source = FakeDevice(MODES[1]), Source()
    trained(device, Prefetcher(device, 1), source)
    assert not [event for event in device.host_waits if event.stream is device.copies]


def test_host_does_not_wait_for_copies_that_the_training_waits_for():
    device, source = FakeDevice(), Source()
    prefetcher, batches = Prefetcher(device, 1), []
    for number in range(BATCHES):
        batches.append(prefetcher.next(source.wait, source.ready)[1]())
        assert device.copies.done <= 2 * number  # copies of the earlier batches


def test_copy_finishes_before_the_next_batch_is_waited_for():
    """The next batch's samples may need the memory of earlier batches."""
    device, source = FakeDevice(pins=True), Source()
    prefetcher = Prefetcher(device, 1)
    source.there = 1
    prefetcher.next(source.wait, source.ready)
    assert device.staged == 2

    def wait():
        assert device.staged == 0
        return source.wait()

    prefetcher.next(wait, source.ready)


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_page_locked_memory_is_bounded_if_copies_are_late(ahead):
    device, source = FakeDevice(pins=True), Source()
    prefetcher = Prefetcher(device, ahead)
    for _ in range(BATCHES):
        number, give = prefetcher.next(source.wait, source.ready)
        assert device.staged <= 2 * (ahead + 1)
        device.step(give(), lambda seen: None)


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_device_memory_is_bounded_if_the_training_is_late(ahead):
    device, source = FakeDevice(MODES[1]), Source(40)
    trained(device, Prefetcher(device, ahead), source, 40)
    assert device.blocks <= 2 * (ahead + 3)


def test_page_locked_memory_is_released_after_its_copy_without_waiting():
    device, source = FakeDevice(MODES[1], pins=True), Source()
    prefetcher = Prefetcher(device, 1)
    prefetcher.next(source.wait, source.ready)
    prefetcher.next(source.wait, source.ready)
    assert device.staged == 2  # from the batch that was copied last


def test_batch_errors_are_raised_in_batch_order():
    device, source = FakeDevice(), Source()
    source.fails = (1,)
    prefetcher = Prefetcher(device, 1)
    (first, give), (second, fail), (third, give_third) = (prefetcher.next(source.wait, source.ready) for _ in range(3))
    assert (first, second, third) == (0, 1, 2)
    assert device.has(give()["rows"]) and device.has(give_third()["rows"])
    with pytest.raises(ValueError, match="no batch 1"):
        fail()


def test_error_while_fetching_ahead_is_raised_after_earlier_batches():
    device, source = FakeDevice(), Source()
    prefetcher = Prefetcher(device, 2)
    ready = iter([source.make, lambda: 1 / 0])
    assert prefetcher.next(source.wait, lambda: next(ready)())[0] == 0
    assert prefetcher.next(source.wait, lambda: pytest.fail("asked again"))[0] == 1
    with pytest.raises(ZeroDivisionError):
        prefetcher.next(source.wait, source.ready)
    assert prefetcher.next(source.wait, source.ready)[0] == 2


def test_out_of_memory_fails_the_batch_and_keeps_memory_being_copied():
    device, source = FakeDevice(pins=True), Source()
    device.fails_after = 1
    prefetcher = Prefetcher(device, 0)
    with pytest.raises(OutOfMemory) as caught:
        prefetcher.next(source.wait, source.ready)[1]()
    caught.value.__traceback__ = None  # the traceback also refers to the batch
    del caught
    gc.collect()
    assert device.staged == 2


def test_cleared_batches_keep_their_memory_until_copied():
    device, source = FakeDevice(pins=True), Source()
    prefetcher = Prefetcher(device, 2)
    prefetcher.next(source.wait, source.ready)
    prefetcher.clear()
    gc.collect()
    assert not prefetcher.waiting and device.staged == 6
    del prefetcher
    gc.collect()
    assert device.staged == 0 and device.copies.done == device.copies.given


def test_now_copies_a_single_batch():
    device, source = FakeDevice(), Source()
    prefetcher, read = Prefetcher(device, 0), []
    for _ in range(3):
        batch = prefetcher.now([source.make()[1](), "as it is"])
        assert batch[1] == "as it is"
        device.step(batch[0], lambda seen: read.append(seen["number"].item()))
        del batch
    device.finish()
    assert read == [0, 1, 2]
