import os
import pickle
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

sys.path.append(str(Path(__file__).parents[1]))

from fake_library import FakeLibrary, make_plan, make_trainer  # noqa: E402

from mpidata.errors import LibraryError, StreamError  # noqa: E402
from mpidata.run.plan import Field  # noqa: E402
from mpidata.trainer import join as job  # noqa: E402
from mpidata.trainer.dataset import MPIStreamDataset  # noqa: E402


@pytest.fixture(params=["copied", "without a copy"])
def library(request, monkeypatch):
    monkeypatch.setattr(job, "_trainer", None)
    monkeypatch.setattr("mpidata.run.deadlines.LEFT_LOOP_S", 0.05)
    monkeypatch.setattr("mpidata.run.deadlines.LOOKED_AT_DATA_S", 0.2)
    library = FakeLibrary()
    if request.param == "without a copy":
        library.pages = []
    trainer = make_trainer(library)
    yield library
    trainer.closed = True  # what a test has left planned comes to nothing


def numbers(batch):
    return batch["temperature"][:, 0, 0].tolist()


def test_batches(library):
    batches = list(MPIStreamDataset(batch_size=5))
    assert [numbers(batch) for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    last = batches[-1]
    assert last["temperature"].shape == (5, 2, 3) and last["temperature"].dtype == torch.float32
    assert torch.equal(last["temperature"], torch.arange(5.0, 10).reshape(5, 1, 1).expand(5, 2, 3))
    assert last["scalar"].tolist() == [5, 6, 7, 8, 9] and last["scalar"].dtype == torch.int64
    assert last["parameters"].tolist() == [[n, -n] for n in range(5, 10)] and last["parameters"].dtype == torch.float64
    assert last["time"].tolist() == [2.5, 3, 3.5, 4, 4.5]
    assert last["step"].tolist() == [0, 1, 2, 3, 4] and last["simulation"].tolist() == [1] * 5


def test_single_samples_collate_to_the_same_batches(library):
    batches = list(DataLoader(MPIStreamDataset(), batch_size=5))
    assert library.count == 1
    for batch, numbers_wanted in zip(batches, ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]), strict=True):
        assert numbers(batch) == numbers_wanted
        assert batch["parameters"].shape == (len(numbers_wanted), 2) and batch["parameters"].dtype == torch.float64
        assert batch["time"].dtype == torch.float64 and batch["time"].tolist() == [0.5 * n for n in numbers_wanted]
        assert batch["step"].dtype == batch["simulation"].dtype == torch.int64
        assert batch["scalar"].tolist() == numbers_wanted


def test_ready_batches_pass_through_a_dataloader(library):
    assert [numbers(b) for b in DataLoader(MPIStreamDataset(4), batch_size=None)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]


def test_held_batches_keep_their_values(library):
    held = [batch["temperature"][1:, 0] for batch in MPIStreamDataset(batch_size=3)]
    assert [part[:, 0].tolist() for part in held] == [[1, 2], [4, 5], [7, 8], [10, 11]]


def test_batches_that_are_let_go_share_memory(library):
    addresses = set()
    batches = iter(MPIStreamDataset(batch_size=2))
    for _ in range(6):
        addresses.add(next(batches)["temperature"].data_ptr())
    assert library.drawn == 12 and len(addresses) == 1


def test_waits_until_there_are_samples(library):
    library.again = 5
    assert len(list(MPIStreamDataset(6))) == 2


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


def test_closed_stream_is_over_and_an_error_is_raised(library):
    stream = MPIStreamDataset(2)
    library.draw_status = 9
    with pytest.raises(LibraryError, match="The sentence"):
        _ = stream.over
    stream.close()
    assert stream.over


@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
@pytest.mark.parametrize("tail", ["drop", "repeat"])
def test_expected_batches(library, policy, tail):
    for trainers in (1, 2, 3):
        for simulations, steps in ((1, 1), (3, 5), (4, 7)):
            library.plan = make_plan(policy=policy, tail=tail, trainers=trainers, simulations=simulations)
            make_trainer(library)
            shares = [0] * trainers
            for simulation in range(simulations):
                for step in range(steps):
                    shares[(simulation + step) % trainers] += 1
            expected = -(-max(shares) // 2) if tail == "repeat" and min(shares) else min(shares) // 2
            stream = MPIStreamDataset(2, steps_per_simulation=steps)
            assert stream.expected_batches == (None if policy == "reservoir" else expected)


def test_expected_batches_are_learnt(library):
    stream = MPIStreamDataset()
    assert stream.expected_batches is None
    library.known_steps = 5
    assert stream.expected_batches == 15
    trainer = job.join()
    trainer.checkpoints.restored = trainer.checkpoints.restored._replace(batch=4)
    assert stream.expected_batches == 15
    trainer.checkpoints.restored = trainer.checkpoints.restored._replace(trainers=2)
    assert stream.expected_batches is None


def test_error_of_the_library_is_raised(library):
    library.draw_status = 9
    with pytest.raises(LibraryError, match="The sentence. Where. What to do."):
        next(iter(MPIStreamDataset(6)))


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
    time.sleep(0.3)
    assert library.stopped == []
    assert [numbers(batch) for batch in stream] == [[6, 7], [8, 9], [10, 11]]


def test_break_stops_the_job_a_little_later(library):
    for i, _ in enumerate(MPIStreamDataset(2)):
        if i == 1:
            break
    assert library.stopped == []
    time.sleep(0.3)
    assert library.stopped == [(0, "the script left its loop early, after batch 2")]


def test_new_pass_takes_the_stop_back(library):
    stream = MPIStreamDataset(2)
    for i, _ in enumerate(stream):
        if i == 1:
            break
    batches = iter(stream)
    time.sleep(0.3)
    assert library.stopped == []
    assert len(list(batches)) == 4


def test_look_at_the_first_batch_may_take_longer(library):
    stream = MPIStreamDataset(2)
    assert numbers(next(iter(stream))) == [0, 1]
    time.sleep(0.1)
    assert library.stopped == []
    assert len(list(stream)) == 5
    assert library.stopped == []


def test_pass_after_the_stop_is_empty_and_says_so(library):
    stream = MPIStreamDataset(2)
    next(iter(stream))
    time.sleep(0.4)
    with pytest.warns(UserWarning, match="left its loop early, after batch 1"):
        assert list(stream) == []


def test_break_inside_a_dataloader_stops_the_job(library):
    for i, _ in enumerate(DataLoader(MPIStreamDataset(), batch_size=3)):
        if i == 1:
            break
    time.sleep(0.3)
    assert library.stopped == [(0, "the script left its loop early, after sample 6")]


def test_whole_pass_is_no_stop(library):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = MPIStreamDataset(2)
        list(stream)
        stream.close()
    time.sleep(0.1)
    assert library.stopped == [] and library.calls == ["start", "close"]


def test_close_before_the_end_stops_the_job_once(library):
    stream = MPIStreamDataset(2)
    for i, _ in enumerate(stream):
        if i == 1:
            break
    stream.close()
    stream.close()
    time.sleep(0.3)
    assert library.stopped == [(0, "the script ended after batch 2, before the stream was over")]
    assert library.calls == ["start", "close"]
    with pytest.raises(StreamError, match="The stream is closed"):
        next(iter(stream))


def test_second_dataset_shares_the_stream(library):
    first, second = MPIStreamDataset(2), MPIStreamDataset(2)
    pairs = list(zip(first, second, strict=True))
    assert [[numbers(a), numbers(b)] for a, b in pairs] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert library.calls == ["start"]
    with pytest.raises(StreamError, match=r"MPIStreamDataset\(batch_size=4\) cannot be made.*already has batch_size=2"):
        MPIStreamDataset(4)


@pytest.mark.parametrize("arguments", [{"batch_size": 0}, {"batch_size": 2.5}, {"batch_size": True}])
def test_wrong_batch_size_is_refused(library, arguments):
    with pytest.raises(StreamError, match="is no positive whole number"):
        MPIStreamDataset(**arguments)


def test_epochs_of_single_samples_are_refused(library):
    with pytest.raises(StreamError, match="batches_per_epoch=3 needs batch_size"):
        MPIStreamDataset(batches_per_epoch=3)


def test_batches_of_batches_are_refused(library):
    with pytest.raises(StreamError, match=r"batches of batches. Use DataLoader\(stream, batch_size=None\)"):
        next(iter(DataLoader(MPIStreamDataset(4), batch_size=4)))
    with pytest.raises(StreamError, match="batches of batches"):
        next(iter(DataLoader(MPIStreamDataset(4))))
    assert library.drawn == 0


def test_dropping_the_last_samples_is_warned_of(library):
    with pytest.warns(UserWarning, match="drop_last=True leaves out the last samples of each pass"):
        assert len(list(DataLoader(MPIStreamDataset(), batch_size=5, drop_last=True))) == 2


@pytest.mark.parametrize("arguments", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_orders_of_samples_are_refused_by_torch(library, arguments):
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


def test_a_forked_child_waits_for_no_lock_of_the_trainer(library, capfd):
    stream = MPIStreamDataset(2)
    batches = iter(stream)
    next(batches)
    uses = [stream.checkpoint, lambda: stream.report(loss=1.0), lambda: next(batches), lambda: next(iter(stream))]
    with stream._trainer._lock:  # as that of a thread that is just leaving; this thread could take it again
        child = in_child_of_a_thread(lambda: (refusals(uses), batches.__del__(), stream.close()))
    assert child == 0
    assert capfd.readouterr().out.count("The stream cannot be used in a forked process") == len(uses)
    assert library.drawn == 2 and not library.stopped and not library.reports


def refusals(uses):
    for use in uses:
        with pytest.raises(StreamError) as caught:
            use()
        print(caught.value, flush=True)


def in_child_of_a_thread(call):
    """Fork in another thread than the caller's, call, and return the child's status; a child that waits is killed."""
    status = []

    def fork():
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(4)
            try:
                call()
            finally:
                os._exit(sys.exc_info()[0] is not None)
        status.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    return status[0]


def test_workers_that_are_not_forked_are_refused_too(library):
    with pytest.raises(StreamError, match="num_workers > 0 does not work with MPIStreamDataset"):
        pickle.dumps(MPIStreamDataset())


def test_outside_a_job_it_says_how_to_start_one(monkeypatch):
    monkeypatch.setattr(job, "_trainer", None)
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    with pytest.raises(StreamError, match="not part of a job.*mpidata run job.yaml"):
        MPIStreamDataset()
    assert "mpi4py" not in sys.modules


def test_properties(library):
    stream = MPIStreamDataset(2)
    assert stream.parameter_names == ("alpha", "beta")
    assert list(stream.fields) == ["temperature", "scalar"]
    assert stream.fields["temperature"] == Field("temperature", "float32", (2, 3))


def test_report(library):
    stream = MPIStreamDataset(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.report(loss=torch.tensor(0.5, requires_grad=True))
    stream.report(other=float("nan"), third=3)
    assert library.reports[0] == ("loss", 0.5) and library.reports[1][1] != library.reports[1][1]
    assert library.reports[2] == ("third", 3.0)


@pytest.mark.parametrize("values", [{"a b": 1.0}, {"x" * 64: 1.0}, {"loss": "low"}, {"loss": torch.ones(2)}])
def test_report_refuses_what_is_no_name_or_number(library, values):
    with pytest.raises(StreamError, match="^report: "):
        MPIStreamDataset(2).report(good=1.0, **values)
    assert library.reports == []


def test_validation(library):
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


def test_validation_in_a_dataloader(library):
    library.n_validation = 5
    (first, second) = DataLoader(MPIStreamDataset(2).validation(), batch_size=3)
    assert numbers(first) == [0, 1, 2] and numbers(second) == [3, 4]
    assert first["time"].dtype == torch.float64 and first["step"].dtype == torch.int64
    with pytest.raises(StreamError, match="does not work with validation samples"):
        next(iter(DataLoader(MPIStreamDataset(2).validation(), num_workers=1, multiprocessing_context="fork")))


def test_validation_of_a_job_that_stops(library):
    stream = MPIStreamDataset(2)
    library.stopped.append("by another trainer")
    with pytest.raises(StreamError, match="stopped before the validation samples were complete"):
        stream.validation()


def test_no_parameters(monkeypatch):
    library = FakeLibrary(make_plan(parameters=()), validation=1)
    monkeypatch.setattr(job, "_trainer", None)
    make_trainer(library)
    assert MPIStreamDataset(2).validation()[0]["parameters"].shape == (0,)
