"""Passes over a stream: epochs, leaving one early, and the end."""

import warnings

import pytest
from fake_library import numbers
from torch.utils.data import DataLoader
from waiting import stays, wait_until

from mpidata.errors import LibraryError, StreamError
from mpidata.trainer.dataset import MPIStreamDataset


def test_second_pass_over_a_stream_that_is_over_ends_at_once(library):
    stream = MPIStreamDataset(6)
    assert len(list(stream)) == 2
    with pytest.warns(UserWarning, match="is empty: the stream was over after batch 2. .*`while not stream.over:`"):
        assert list(stream) == []
    library.draw_status = 9
    with pytest.warns(UserWarning, match="is empty"):
        assert list(stream) == []


def test_loop_over_epochs_knows_when_the_stream_is_over(library):
    stream = MPIStreamDataset(2, batches_per_epoch=3)
    epochs = []
    while not stream.over:
        library.again = 2
        epochs.append([numbers(batch) for batch in stream])
    assert epochs == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert stream.over and library.drawn == 12


def test_a_loop_that_was_cut_short_can_be_told_from_one_that_was_not(library):
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    assert not stream.stopped
    library.stopped.append((0, "SIGTERM"))
    assert list(batches) == [] and stream.stopped


def test_closed_stream_is_over_and_an_error_is_raised(library):
    stream = MPIStreamDataset(2)
    library.draw_status = 9
    with pytest.raises(LibraryError, match="The sentence"):
        _ = stream.over
    stream.close()
    assert stream.over


def test_epochs_go_on_where_the_last_one_stopped(library):
    stream = MPIStreamDataset(2, batches_per_epoch=2)
    with pytest.warns(UserWarning, match="is empty"):  # the fourth was not known to be the last
        epochs = [[numbers(batch) for batch in stream] for _ in range(5)]
    assert epochs == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]], [], []]
    assert library.stopped == []


def test_leaving_an_epoch_early_is_no_stop(library):
    stream = MPIStreamDataset(2, batches_per_epoch=3)
    next(iter(stream))
    for batch in stream:
        if numbers(batch) == [4, 5]:
            break
    assert stays(lambda: library.stopped == [], 0.3)
    assert [numbers(batch) for batch in stream] == [[6, 7], [8, 9], [10, 11]]


def test_break_stops_the_job_a_little_later(library):
    for i, _ in enumerate(MPIStreamDataset(2)):
        if i == 1:
            break
    assert library.stopped == []
    assert wait_until(lambda: library.stopped) == [(0, "the script left its loop early, after batch 2")]


def test_new_pass_takes_the_stop_back(library):
    stream = MPIStreamDataset(2)
    for i, _ in enumerate(stream):
        if i == 1:
            break
    batches = iter(stream)
    assert stays(lambda: library.stopped == [], 0.3)
    assert len(list(batches)) == 4


def test_look_at_the_first_batch_may_take_longer(library):
    stream = MPIStreamDataset(2)
    assert numbers(next(iter(stream))) == [0, 1]
    assert stays(lambda: library.stopped == [], 0.1)
    assert len(list(stream)) == 5
    assert library.stopped == []


def test_pass_after_the_stop_is_empty_and_says_so(library):
    stream = MPIStreamDataset(2)
    next(iter(stream))
    wait_until(lambda: library.stopped)
    with pytest.warns(UserWarning, match="left its loop early, after batch 1"):
        assert list(stream) == []


def test_break_inside_a_dataloader_stops_the_job(library):
    for i, _ in enumerate(DataLoader(MPIStreamDataset(), batch_size=3)):
        if i == 1:
            break
    assert wait_until(lambda: library.stopped) == [(0, "the script left its loop early, after sample 6")]


def test_whole_pass_is_no_stop(library):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = MPIStreamDataset(2)
        list(stream)
        stream.close()
    assert stays(lambda: library.stopped == [] and library.calls == ["start", "close"], 0.1)


def test_close_before_the_end_stops_the_job_once(library):
    stream = MPIStreamDataset(2)
    for i, _ in enumerate(stream):
        if i == 1:
            break
    stream.close()
    stream.close()
    said = [(0, "the script ended after batch 2, before the stream was over")]
    assert stays(lambda: library.stopped == said, 0.3)
    assert library.calls == ["start", "close"]
    with pytest.raises(StreamError, match="The stream is closed"):
        next(iter(stream))
