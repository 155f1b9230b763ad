"""Passes over a stream: epochs, leaving one early, and the end."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from accelerate.data_loader import DataLoaderShard
from fake_library import make_plan, numbers
from lightning.pytorch.loops.fetchers import _PrefetchDataFetcher
from lightning.pytorch.utilities.combined_loader import CombinedLoader
from torch.utils.data import DataLoader
from waiting import stays

from mpidata.errors import LibraryError, StreamError
from mpidata.loading.figures import LEFT_EARLY
from mpidata.trainer import join as job
from mpidata.trainer.dataset import MPIStreamDataset


def test_second_pass_over_a_finished_stream_is_empty_with_a_warning(library):
    stream = MPIStreamDataset(6)
    assert len(list(stream)) == 2
    with pytest.warns(UserWarning, match="is empty: the stream was over after batch 2. .*`while not stream.over:`"):
        assert list(stream) == []
    library.draw_status = 9
    with pytest.warns(UserWarning, match="is empty"):
        assert list(stream) == []


def test_loop_over_epochs_ends_when_the_stream_is_over(library):
    stream = MPIStreamDataset(2, batches_per_epoch=3)
    epochs = []
    while not stream.over:
        library.again = 2
        epochs.append([numbers(batch) for batch in stream])
    assert epochs == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert stream.over and library.drawn == 12


def test_stopped_is_true_after_the_job_stopped_the_loop(library):
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    assert not stream.stopped
    library.stopped.append((0, "SIGTERM"))
    assert list(batches) == [] and stream.stopped


def test_over_raises_library_errors_until_the_stream_is_closed(library):
    stream = MPIStreamDataset(2)
    library.draw_status = 9
    with pytest.raises(LibraryError, match="The sentence"):
        _ = stream.over
    stream.close()
    assert stream.over


def test_each_epoch_continues_where_the_last_one_stopped(library):
    stream = MPIStreamDataset(2, batches_per_epoch=2)
    with pytest.warns(UserWarning, match="is empty"):  # the fourth was not known to be the last
        epochs = [[numbers(batch) for batch in stream] for _ in range(5)]
    assert epochs == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]], [], []]
    assert library.stopped == []


@pytest.mark.parametrize("batches_per_epoch", [None, 4])
def test_pass_left_early_does_not_stop_the_job_and_the_next_continues(library, batches_per_epoch):
    stream = MPIStreamDataset(2, batches_per_epoch=batches_per_epoch)
    assert numbers(next(iter(stream))) == [0, 1]
    for batch in stream:
        if numbers(batch) == [4, 5]:
            break
    assert [numbers(batch) for batch in itertools.islice(stream, 2)] == [[6, 7], [8, 9]]
    assert [numbers(batch) for batch in stream] == [[10, 11]]
    assert library.stopped == []


def test_dataloader_left_early_continues_in_the_next_loop(library):
    loader = DataLoader(MPIStreamDataset(), batch_size=3)
    for i, _ in enumerate(loader):
        if i == 1:
            break
    assert [numbers(batch) for batch in loader] == [[6, 7, 8], [9, 10, 11]]
    assert library.stopped == []


def test_pace_reports_whether_the_script_has_left_its_loop(library):
    stream = MPIStreamDataset(2)
    trainer = job.join()
    assert not trainer._pace().outside  # the loop has not started
    for _ in stream:
        assert not trainer._pace().outside
        break
    assert trainer._pace().outside
    for _ in stream:
        assert not trainer._pace().outside


def test_complete_pass_is_not_reported_as_a_stop(library):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = MPIStreamDataset(2)
        list(stream)
        stream.close()
        job.join().close()
    assert stays(lambda: library.stopped == [] and library.calls == ["start", "close"], 0.1)


def test_close_before_the_end_stops_the_job_once(library):
    stream = MPIStreamDataset(2)
    for i, _ in enumerate(stream):
        if i == 1:
            break
    stream.close()
    stream.close()
    said = [(0, "the script called stream.close() after batch 2, before the stream was over")]
    assert stays(lambda: library.stopped == said, 0.3)
    assert library.calls == ["start"]  # the job is left when the script ends
    job.join().close()
    job.join().close()
    assert library.stopped == said and library.calls == ["start", "close"]
    with pytest.raises(StreamError, match="The stream is closed"):
        next(iter(stream))


def test_ctrl_c_ends_the_loop_with_a_keyboard_interrupt_once(library, tmp_path):
    trainer = job.join()
    trainer.plan = make_plan(run=tmp_path)
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    (tmp_path / "stop").write_text("SIGINT without-checkpoint\n")
    assert numbers(next(batches)) == [2, 3]  # the scheduler has not notified the trainers yet
    library.stopped.append((0, "Ctrl-C"))
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert stream.over and stream.stopped
    with pytest.warns(UserWarning, match="is empty: the job was stopped after batch 2"):
        assert list(stream) == []


def test_finished_stream_raises_no_keyboard_interrupt(library, tmp_path):
    job.join().plan = make_plan(run=tmp_path)
    (tmp_path / "stop").write_text("SIGINT without-checkpoint\n")
    assert len(list(MPIStreamDataset(2))) == 6


def test_ctrl_c_ends_the_wait_for_validation(library, tmp_path):
    job.join().plan = make_plan(run=tmp_path)
    (tmp_path / "stop").write_text("SIGINT without-checkpoint\n")
    library.stopped.append((0, "Ctrl-C"))
    with pytest.raises(KeyboardInterrupt):
        MPIStreamDataset(2).validation()


def test_interrupted_script_without_a_stream_reports_that_it_left_early(library, tmp_path):
    trainer = job.join()
    trainer.plan = make_plan(run=tmp_path, groups=0)
    (tmp_path / "stop").write_text("SIGINT without-checkpoint\n")
    with pytest.raises(KeyboardInterrupt):
        trainer.raise_interrupt()  # as the wait for a batch from loaders does
    trainer.close()
    assert library.reports == [(LEFT_EARLY, 0)]


def test_uninterrupted_script_without_a_stream_reports_no_early_end(library, tmp_path):
    job.join().plan = make_plan(run=tmp_path, groups=0)
    job.join().close()
    assert library.reports == []


def test_script_that_fails_after_close_reports_its_error(library):
    stream = MPIStreamDataset(2)
    list(stream)
    stream.close()
    job.join().fail("OSError: no space for the model (train.py line 9)")
    job.join().close()
    assert library.stopped == [(1, "OSError: no space for the model (train.py line 9)")]
    assert library.calls == ["start", "close"]


def test_refused_pass_does_not_count_as_a_pass(library, monkeypatch):
    def refuse(trainer):
        raise StreamError("Lightning resumed from a checkpoint of step 3")

    stream = MPIStreamDataset(2)
    with monkeypatch.context() as patched:
        patched.setattr("mpidata.trainer.dataset.compare_steps", refuse)
        with pytest.raises(StreamError, match="of step 3"):
            next(iter(stream))
    for _ in itertools.islice(stream, 2):
        pass
    assert job.join()._pace().outside


def test_a_loop_that_closes_the_stream_ends(library):
    stream, seen = MPIStreamDataset(2), 0
    for _ in stream:
        seen += 1
        stream.close()
    assert seen == 1
    with pytest.raises(StreamError, match="The stream is closed"):
        next(iter(stream))


@pytest.mark.parametrize("how", ["iterators", "threads"])
def test_alternating_iterators_or_threads_are_warned_about_once(library, how):
    stream = MPIStreamDataset(2)
    one = iter(stream)
    other = iter(stream) if how == "iterators" else one
    with ThreadPoolExecutor(1) as pool:

        def draw_both():
            next(one)
            next(other) if how == "iterators" else pool.submit(next, other).result()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            draw_both()
        with pytest.warns(UserWarning, match="Several iterators or threads draw from this stream in turn.") as caught:
            draw_both()
            draw_both()
    assert len(caught) == 1


def test_consecutive_passes_raise_no_warning(library):
    stream = MPIStreamDataset(2, batches_per_epoch=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = [iter(stream) for _ in range(4)]  # Lightning holds one that it does not use
        for batches in held:
            next(batches)


def test_load_state_dict_refuses_states_of_another_batch(library):
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    state = stream.state_dict()
    stream.load_state_dict(state)
    next(batches)
    with pytest.raises(StreamError, match="the state is of batch 1, but this stream is at batch 2. .* --resume`"):
        stream.load_state_dict(state)
    with pytest.raises(StreamError, match="the state is of batch None"):
        stream.load_state_dict({})
    with pytest.raises(StreamError, match="the state is of batch None"):
        stream.load_state_dict(None)


@pytest.mark.parametrize("size", [2, None])
@pytest.mark.parametrize("framework", ["accelerate", "lightning"])
def test_prefetched_batches_of_a_left_loop_come_first_in_the_next_pass(library, size, framework):
    stream = MPIStreamDataset(size)
    loader = DataLoader(stream, batch_size=None if size else 2)

    def batches():
        if framework == "accelerate":
            return iter(DataLoaderShard(stream, batch_size=loader.batch_size))
        fetcher = _PrefetchDataFetcher()
        fetcher.setup(CombinedLoader(loader))
        return (batch for batch, _, _ in fetcher)

    used = []
    for leave_after in (1, 2, 2):
        for batch in itertools.islice(batches(), leave_after):
            used += numbers(batch)
        assert not stream.over
    assert used == list(range(10))
    assert [numbers(batch) for batch in batches()] == [[10, 11]] and stream.over
    assert library.drawn == 12


def test_closed_stream_stays_over_when_a_running_iterator_is_freed(library):
    stream = MPIStreamDataset(2)
    running, left = (iter(DataLoaderShard(stream, batch_size=None)) for _ in range(2))
    next(running)
    next(left)
    del left
    assert not stream.over
    stream.close()
    assert stream.over
    del running
    assert stream.over


def test_loop_without_prefetch_repeats_no_batch_after_it_is_left(library):
    loader = DataLoader(MPIStreamDataset(2), batch_size=None)
    assert [numbers(next(iter(loader))) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
