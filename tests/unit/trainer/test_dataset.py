"""MPIStreamDataset: its batches, arguments and figures."""

import dataclasses
import sys
import warnings

import pytest
import torch
from fake_library import make_plan, make_trainer, numbers
from torch.utils.data import DataLoader

import mpidata
from mpidata.errors import LibraryError, StreamError
from mpidata.run.plan import Field
from mpidata.trainer import join as job
from mpidata.trainer.batch_count import expected_batches
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.shares.grouping import Grouping


def test_batches_have_the_expected_values_shapes_and_dtypes(library):
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


def test_memory_of_released_batches_is_reused(library):
    addresses = set()
    batches = iter(MPIStreamDataset(batch_size=2))
    for _ in range(6):
        addresses.add(next(batches)["temperature"].data_ptr())
    assert library.drawn == 12 and len(addresses) == 1


def test_stream_waits_for_samples(library):
    library.again = 5
    assert len(list(MPIStreamDataset(6))) == 2


@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
@pytest.mark.parametrize("tail", ["drop", "repeat"])
def test_expected_batches_of_each_policy_and_tail(library, policy, tail):
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


@pytest.mark.parametrize(
    ("repeats", "batch", "batches"),
    [(1.0, 3, 16), (1.15, 3, 19), (2.5, 3, 41), (1.15, 1, 57)],
)
def test_expected_batches_of_a_draw_budget(library, repeats, batch, batches):
    library.plan = make_plan(policy="reservoir", trainers=2, simulations=10, repeats=repeats)
    make_trainer(library)
    assert (
        MPIStreamDataset(batch, steps_per_simulation=10).expected_batches == batches
    )  # floor(repeats x 100 / 2 batch)


@pytest.mark.parametrize(("repeats", "batches"), [(1.15, 23), (2.3, 46)])
def test_draw_budget_is_not_one_batch_short_by_rounding(repeats, batches):
    # In floating point 1.15 x 100 is a little less than 115.
    assert expected_batches(make_plan(policy="reservoir", simulations=100, repeats=repeats), 1, Grouping(5)) == batches


def test_expected_batches_are_computed_once_the_steps_are_known(library):
    stream = MPIStreamDataset()
    assert stream.expected_batches is None
    library.known_steps = 5
    assert stream.expected_batches == 15
    trainer = job.join()
    trainer.checkpoints.restored = trainer.checkpoints.restored._replace(batch=4)
    assert stream.expected_batches == 15
    trainer.checkpoints.restored = trainer.checkpoints.restored._replace(trainers=2)
    assert stream.expected_batches is None


def test_library_errors_are_raised(library):
    library.draw_status = 9
    with pytest.raises(LibraryError, match="The sentence. Where. What to do."):
        next(iter(MPIStreamDataset(6)))


def test_second_dataset_shares_the_stream(library):
    first, second = MPIStreamDataset(2), MPIStreamDataset(2)
    pairs = list(zip(first, second, strict=True))
    assert [[numbers(a), numbers(b)] for a, b in pairs] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert library.calls == ["start"]
    with pytest.raises(StreamError, match=r"MPIStreamDataset\(batch_size=4\) cannot be created.*has batch_size=2"):
        MPIStreamDataset(4)


@pytest.mark.parametrize("arguments", [{"batch_size": 0}, {"batch_size": 2.5}, {"batch_size": True}])
def test_wrong_batch_size_is_refused(library, arguments):
    with pytest.raises(StreamError, match="is not a positive integer"):
        MPIStreamDataset(**arguments)


def test_batches_per_epoch_without_batch_size_is_refused(library):
    with pytest.raises(StreamError, match="batches_per_epoch=3 needs batch_size"):
        MPIStreamDataset(batches_per_epoch=3)


def test_error_outside_a_job_explains_how_to_start_one(monkeypatch):
    monkeypatch.setattr(job, "_trainer", None)
    monkeypatch.delenv("MPIDATA_RUN", raising=False)
    with pytest.raises(StreamError, match="not part of a job.*mpidata run job.yaml.*mpidata try --made-up job.yaml "):
        MPIStreamDataset()
    assert "mpi4py" not in sys.modules


def test_script_started_by_torchrun_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(job, "_trainer", None)
    monkeypatch.setenv("MPIDATA_RUN", str(tmp_path))
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with pytest.raises(StreamError, match="torchrun has started this script.*'trainers.ranks'"):
        MPIStreamDataset()


def test_stream_has_the_fields_and_parameter_names_of_the_job(library):
    stream = MPIStreamDataset(2)
    assert stream.parameter_names == ("alpha", "beta")
    assert list(stream.fields) == ["temperature", "scalar"]
    assert stream.fields["temperature"] == Field("temperature", "float32", (2, 3))


def test_report_sends_tensors_and_numbers_as_floats(library):
    stream = MPIStreamDataset(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.report(loss=torch.tensor(0.5, requires_grad=True))
    stream.report(other=float("nan"), third=3)
    assert library.reports[0] == ("loss", 0.5) and library.reports[1][1] != library.reports[1][1]
    assert library.reports[2] == ("third", 3.0)


def test_picture_is_written_or_its_failure_is_printed(library, tmp_path, capfd):
    stream = MPIStreamDataset(2)
    stream._trainer.plan = dataclasses.replace(stream._trainer.plan, run=tmp_path)
    stream.picture("field", torch.rand(3, 4))
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["field-0.png"]
    with pytest.raises(StreamError, match="picture: 'a b' cannot name a picture"):
        stream.picture("a b", torch.rand(3, 4))
    (tmp_path / "pictures" / "field-0.png").unlink()
    (tmp_path / "pictures").rmdir()
    (tmp_path / "pictures").touch()
    stream.picture("field", torch.rand(3, 4))
    assert "the picture 'field' cannot be written" in capfd.readouterr().err


def test_script_without_a_stream_can_report_and_register(library, monkeypatch):
    monkeypatch.setenv("MPIDATA_RUN", "/run")
    mpidata.report(loss=torch.tensor(0.25))
    assert library.reports == [("loss", 0.25)]
    mpidata.register(model=torch.nn.Linear(1, 1))
    with pytest.raises(StreamError, match="has registered model already"):
        MPIStreamDataset(2).register(model=torch.nn.Linear(1, 1))


@pytest.mark.parametrize("values", [{"a b": 1.0}, {"x" * 64: 1.0}, {"loss": "low"}, {"loss": torch.ones(2)}])
def test_report_refuses_invalid_names_and_values(library, values):
    with pytest.raises(StreamError, match="^report: "):
        MPIStreamDataset(2).report(good=1.0, **values)
    assert library.reports == []
