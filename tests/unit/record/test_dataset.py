"""How the record of a trainer is read."""

import os
import pickle
from pathlib import Path

import h5py
import pytest
import torch
from fake_library import make_plan
from recording import SAMPLES, RecordLibrary, check, make_plan_with_lengths, record
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from mpidata import RecordedDataset
from mpidata.errors import MpidataError, StreamError
from mpidata.record.writer import Recorder


@pytest.mark.parametrize("plan", [make_plan, make_plan_with_lengths], indirect=True)
def test_record_can_be_read_while_it_is_written(plan):
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    recorder.start()
    assert len(RecordedDataset(plan.record_path)) == 0
    for count in (10, 25):
        library.come(SAMPLES[:count][-15:] if count == 25 else SAMPLES[:10])
        assert recorder.flush(10)
        check(RecordedDataset(plan.record_path), SAMPLES[:count])
    recorder.finish(10)


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.full)])
def test_loader_workers_read_every_sample_once(plan, start):
    record(plan, SAMPLES)
    dataset = RecordedDataset(plan.record_path)
    assert float(dataset[3]["time"]) == 1.5  # open in the parent
    loader = DataLoader(dataset, batch_size=15, num_workers=2, shuffle=True, multiprocessing_context=start)
    batches = list(loader)
    assert batches[0]["temperature"].shape == (15, 2, 3) and batches[0]["parameters"].shape == (15, 2)
    found = sorted((int(s), int(t)) for b in batches for s, t in zip(b["simulation"], b["step"], strict=True))
    assert found == [s for s in SAMPLES if s[0] < 3]
    for batch in batches:
        assert torch.equal(batch["scalar"], 1000 * batch["simulation"] + 10 * batch["step"])
    check(pickle.loads(pickle.dumps(dataset)), found)


@pytest.mark.parametrize("size", [None, 4])
def test_stateful_loader_resumes_in_mid_epoch(plan, size):
    record(plan, SAMPLES)

    def make():
        return StatefulDataLoader(RecordedDataset(plan.record_path), size, shuffle=True)

    def given(batches):
        return [[batch["simulation"].tolist(), batch["step"].tolist()] for batch in batches]

    loader = make()
    running = iter(loader)
    for _ in range(3):
        next(running)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    again = make()
    again.load_state_dict(state)
    assert given(again) == given(running)


def test_index_out_of_range_raises_index_error(plan):
    record(plan, SAMPLES)
    dataset = RecordedDataset(plan.record_path)
    assert int(dataset[-1]["step"]) == 19
    with pytest.raises(IndexError, match="no sample 60: the record holds 60"):
        dataset[60]


def test_paths_that_are_not_a_record_are_refused(plan, tmp_path):
    folder = plan.record_path
    with pytest.raises(StreamError, match="samples is not a folder"):
        RecordedDataset(folder)
    folder.mkdir()
    with pytest.raises(StreamError, match="no files of a record"):
        RecordedDataset(folder)
    (folder / "trainer-0000.h5").write_bytes(b"something else" * 100)
    with pytest.raises(MpidataError, match="trainer-0000.h5 cannot be read as HDF5"):
        RecordedDataset(folder)
    with h5py.File(folder / "trainer-0000.h5", "w", libver="latest") as file:
        file["x"] = 1
    with pytest.raises(MpidataError, match="is not a file of a record"):
        RecordedDataset(folder)


def test_files_of_two_runs_are_refused(plan, tmp_path):
    record(plan, SAMPLES)
    other = make_plan(run=Path("/other"), record_path=tmp_path / "other")
    record(other, SAMPLES, 1)
    os.rename(other.record_path / "trainer-0001.h5", plan.record_path / "trainer-0001.h5")
    with pytest.raises(StreamError, match="are records of two runs, .*run and /other"):
        RecordedDataset(plan.record_path)


def test_damaged_file_is_refused(plan):
    record(plan, SAMPLES)
    path = plan.record_path / "trainer-0000.h5"
    with h5py.File(path, "r+", libver="latest") as file:
        del file["step"]
    with pytest.raises(MpidataError, match="trainer-0000.h5 is damaged: .*step"):
        RecordedDataset(plan.record_path)
    with h5py.File(path, "r+", libver="latest") as file:
        file.attrs["header"] = "{"
    with pytest.raises(MpidataError, match="trainer-0000.h5 is damaged"):
        RecordedDataset(plan.record_path)
    with open(path, "r+b") as raw:
        raw.truncate(1000)
    with pytest.raises(MpidataError, match="trainer-0000.h5"):
        RecordedDataset(plan.record_path)
