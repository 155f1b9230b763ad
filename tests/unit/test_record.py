"""The record of a trainer: what is in its file, whatever happens to the disk or the process, and how it is read."""

import contextlib
import errno
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from fake_library import FIELDS, FakeLibrary, make_plan, memory
from torch.utils.data import DataLoader

from mpidata import RecordedDataset
from mpidata.errors import MpidataError, StreamError
from mpidata.native.library import AGAIN, SUCCESS
from mpidata.record import file as record_file
from mpidata.record import writer
from mpidata.record.earlier import Earlier
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.record.shrink import shrink
from mpidata.record.writer import Recorder
from mpidata.run.plan import Field

SAMPLES = [(simulation, step) for simulation in range(4) for step in range(20)]  # simulation 3 is the validation


class RecordLibrary(FakeLibrary):
    """With the queue of record.c; a test puts samples in."""

    def __init__(self, plan):
        super().__init__(plan)
        self.queue: deque[tuple[int, int]] = deque()
        self.taken: list[tuple[int, int]] = []
        self.queued = self.written = self.skipped = 0
        self.slowed_s = 0.0
        self.error = 0
        self.why = b"it has not stopped"
        self.writes = 0
        self.limit = None
        self.lock = threading.Condition()

    def come(self, samples):
        with self.lock:
            self.queue.extend(samples)
            self.queued += len(samples)
            self.lock.notify()

    def mpidata_trainer_record_start(self, every, limit, skip):
        self.limit = (every, limit, skip)
        return SUCCESS

    def mpidata_trainer_record_take(self, most, parameters, times, steps, simulations, count, timeout):
        with self.lock:
            if not self.queue:
                self.lock.wait(min(timeout, 0.01))
            self.taken = [self.queue.popleft() for _ in range(min(most, len(self.queue), 7))]
        n = count._obj.value = len(self.taken)
        if not n:
            return AGAIN
        simulation, step = np.array(self.taken).T
        memory(parameters, (n, 2), "float64")[...] = np.stack([simulation, -step], axis=1)
        memory(times, (n,), "float64")[...] = 0.5 * step
        memory(steps, (n,), "int64")[...] = step
        memory(simulations, (n,), "int64")[...] = simulation
        return SUCCESS

    def mpidata_trainer_record_write(self, file, field, first, count, offset):
        self.writes += 1
        if self.error:
            return self.error
        name, dtype, shape = self.plan.fields[field].name, self.plan.fields[field].dtype, self.plan.fields[field].shape
        for i, (simulation, step) in enumerate(self.taken[first : first + count]):
            values = content(name, simulation, step, shape, dtype).tobytes()
            os.pwrite(file, values, offset + i * len(values))
        return 0

    def mpidata_trainer_record_release(self):
        self.written += len(self.taken)
        self.taken = []
        return SUCCESS

    def mpidata_trainer_record_stop(self, why):
        self.written, self.queue = self.queued, deque()
        self.why = why
        return SUCCESS

    def mpidata_trainer_record_figures(self, figures):
        figures._obj.queued, figures._obj.written = self.queued, self.written
        figures._obj.skipped, figures._obj.slowed_s = self.skipped, self.slowed_s
        return SUCCESS


def content(name, simulation, step, shape, dtype):
    return (1000 * simulation + 10 * step + np.arange(np.prod(shape, dtype=int)).reshape(shape)).astype(dtype)


def record(plan, samples, trainer=0, **library_values):
    library = RecordLibrary(plan)
    vars(library).update(library_values)
    recorder = Recorder(plan, library, trainer)
    recorder.start()
    library.come(samples)
    recorder.finish(10)
    return library


def check(dataset, samples):
    """Compare every element."""
    assert [(int(s["simulation"]), int(s["step"])) for s in dataset] == sorted(samples)
    for i in range(len(dataset)):
        sample = dataset[i]
        simulation, step = int(sample["simulation"]), int(sample["step"])
        assert sample["parameters"].tolist() == [simulation, -step] and sample["time"] == 0.5 * step
        for field in dataset.fields.values():
            values = sample[field.name]
            assert values.shape == field.shape and values.dtype == getattr(torch, field.dtype)
            assert np.array_equal(values, content(field.name, simulation, step, field.shape, field.dtype))


@pytest.fixture
def plan(tmp_path):
    return make_plan(run=tmp_path / "run", record_path=tmp_path / "samples")


def test_what_came_is_what_is_read(plan, capfd):
    samples = [SAMPLES[i] for i in np.random.default_rng(0).permutation(len(SAMPLES))]
    library = record(plan, samples)
    assert library.limit == (1, 65536, False) and library.why is None
    dataset = RecordedDataset(plan.record_path)
    assert list(dataset.fields.values()) == list(FIELDS)
    assert dataset.parameter_names == ("alpha", "beta")
    check(dataset, [s for s in SAMPLES if s[0] < 3])
    check(RecordedDataset(str(plan.record_path), validation=True), [s for s in SAMPLES if s[0] == 3])
    assert library.reports == [("record.samples", 80.0), ("record.skipped", 0.0), ("record.slowed_s", 0.0)]
    err = capfd.readouterr().err
    assert err == f"mpidata: recorded 80 samples to {plan.record_path / 'trainer-0000.h5'}.\n"
    with h5py.File(plan.record_path / "trainer-0000.h5") as file:  # as any tool reads it
        assert {d.shape[0] for d in (file["step"], file["fields/temperature"], file["parameters"])} == {80}


@pytest.mark.parametrize("chunk_bytes", [1, 100])
def test_many_chunks(plan, monkeypatch, chunk_bytes):
    """Those of several fields lie in between one another."""
    monkeypatch.setattr(record_file, "_CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(record_file, "_INDEX_ROWS", 3)
    samples = [(0, step) for step in range(300)]
    record(plan, samples)
    check(RecordedDataset(plan.record_path), samples)


@pytest.mark.parametrize("megabytes", [8, 100])
def test_a_large_field_beside_a_scalar(tmp_path, megabytes):
    """Neither takes the room of as many rows as suit the other: a file is about as long as its contents."""
    shape = (megabytes << 17,)
    header = Header("run", 0, 1, ("alpha",), (Field("large", "float64", shape), Field("small", "float32", ())))
    file = RecordFile(tmp_path / "x.h5", header)
    for i in range(3):
        one, number = np.ones(1, np.uint8), np.array([i])
        values = [np.full(shape, i + 0.5), np.full(1, i, np.float32)]
        file.append(
            Rows(number, number, number.astype(float), one * 0, np.full((1, 1), 0.5)),
            lambda fd, field, first, count, at, values=values: os.pwrite(fd, values[field], at),
        )
        assert os.path.getsize(file.path) < 64 << 20 or os.path.getsize(file.path) < 6 * shape[0] * 8
    assert len(RecordedDataset(tmp_path)) == 3  # as it is read while it grows
    file.close()
    dataset = RecordedDataset(tmp_path)
    assert [(float(s["large"].min()), float(s["large"].max()), float(s["small"])) for s in dataset] == [
        (i + 0.5, i + 0.5, float(i)) for i in range(3)
    ]
    assert os.stat(file.path).st_blocks * 512 < 4 * shape[0] * 8


def test_a_resumed_run_adds_only_what_is_new(plan):
    """Two trainers first, then three: each sees what the others have of its share."""
    for trainer in range(2):
        record(make_plan(**vars(plan) | {"trainers": 2}), [s for s in SAMPLES[:50] if sum(s) % 2 == trainer], trainer)
    for trainer in range(3):
        library = record(
            make_plan(**vars(plan) | {"trainers": 3}), [s for s in SAMPLES[30:] if sum(s) % 3 == trainer], trainer
        )
        assert library.reports[0] == ("record.samples", sum(sum(s) % 3 == trainer for s in SAMPLES))  # all starts
    names = ["trainer-0000-2.h5", "trainer-0000.h5", "trainer-0001-2.h5", "trainer-0001.h5", "trainer-0002.h5"]
    assert sorted(os.listdir(plan.record_path)) == names
    rows = 0
    for name in names:
        with h5py.File(plan.record_path / name) as file:
            rows += len(file["step"])
    assert rows == len(SAMPLES)
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


def test_the_record_of_another_run_is_left_alone(plan):
    record(plan, SAMPLES)
    with pytest.raises(MpidataError, match="belongs to another run, .*run. Move the folder"):
        Recorder(make_plan(**vars(plan) | {"run": Path("/other")}), RecordLibrary(plan), 0)
    with pytest.raises(
        MpidataError, match="have field scalar .int64, ... and not temperature .float32, .2, 3.. as"
    ) as caught:
        Recorder(make_plan(**vars(plan) | {"fields": FIELDS[::-1]}), RecordLibrary(plan), 0)
    assert "trainer-0000.h5" in str(caught.value)
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


def test_of_two_runs_that_begin_at_once_one_has_the_record(plan, monkeypatch):
    looked = threading.Barrier(2)
    monkeypatch.setattr(writer, "Earlier", lambda *given: (Earlier(*given), looked.wait(10))[0])

    def begin(run):
        one = make_plan(**vars(plan) | {"run": Path(run)})
        try:
            begun[run] = Recorder(one, RecordLibrary(one), 0)
        except MpidataError as error:
            refused[run] = str(error)

    begun, refused = {}, {}
    both = [threading.Thread(target=begin, args=(run,)) for run in ("/runs/1", "/runs/2")]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(20)
    (winner, recorder), (loser, sentence) = begun.popitem(), refused.popitem()
    assert {winner, loser} == {"/runs/1", "/runs/2"} and f"belongs to another run, {winner}." in sentence
    assert os.listdir(plan.record_path) == ["trainer-0000.h5"]
    with h5py.File(recorder.path, "r", swmr=True) as file:
        assert Header.read(file, recorder.path).run == winner


def test_a_folder_that_cannot_be_made(plan, tmp_path):
    (tmp_path / "samples").write_text("a file")
    with pytest.raises(MpidataError, match="cannot be written to .*samples: .*record.path"):
        Recorder(plan, RecordLibrary(plan), 0)


def test_a_full_disk_stops_the_record(plan, capfd):
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    recorder.start()
    library.come(SAMPLES[:30])
    assert recorder.flush(10)
    library.error = errno.ENOSPC
    library.come(SAMPLES[30:])
    assert not recorder.flush(10)
    recorder.finish(10)
    err = capfd.readouterr().err
    assert "has stopped: No space left on device. The training goes on" in err
    assert f"mpidata: {library.why.decode()}\n" in err
    assert "recorded 30 samples" in err and "it is not whole: No space left on device." in err
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES[:30] if s[0] < 3])


FULL = """
import resource, sys
sys.path[:0] = {path!r}
from test_record import *
record_file._CHUNK_BYTES, record_file._INDEX_ROWS = 100, 16
plan = make_plan(run=Path({run!r}), record_path=Path({folder!r}))
library = RecordLibrary(plan)
recorder = Recorder(plan, library, 0)
recorder.start()
library.come(SAMPLES[:35])
assert recorder.flush(10)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
library.come(SAMPLES[35:])
assert not recorder.flush(10)
recorder.finish(10)
print(library.why.decode())
"""


@pytest.mark.parametrize("limit", [0, 2000, 8000, "os.path.getsize(recorder.path)"])
def test_hdf5_survives_a_disk_that_takes_no_more(plan, limit):
    """Whatever it has not written yet: HDF5 itself would crash when it closes the file."""
    script = FULL.format(
        path=[str(Path(__file__).parent)], run=str(plan.run), folder=str(plan.record_path), limit=limit
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "has stopped: File too large." in done.stdout and "Traceback" not in done.stderr, done.stderr
    dataset = RecordedDataset(plan.record_path)
    assert 35 <= len(dataset)
    check(dataset, SAMPLES[: len(dataset)])


def test_what_the_disk_has_lost_stops_the_record(plan, monkeypatch):
    """It is told before the checkpoint that waits for it can count."""
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    recorder.start()
    library.come(SAMPLES[:30])

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("mpidata.record.file.os.fsync", fail)
    assert not recorder.flush(10)
    assert b"has stopped: Input/output error." in library.why
    recorder.finish(10)


@pytest.mark.parametrize("when_slow", ["skip", "slow_down"])
def test_a_slow_disk_is_spoken_of_once_and_at_the_end(plan, capfd, when_slow):
    plan = make_plan(**vars(plan) | {"record_when_slow": when_slow, "record_every": 2})
    library = record(plan, SAMPLES[:40:2], **({"skipped": 5} if when_slow == "skip" else {"slowed_s": 2.5}))
    assert library.limit == (2, 65536, when_slow == "skip")
    err = capfd.readouterr().err
    assert err.count(f"(record.when_slow: {when_slow})") == 1
    assert ("5 were skipped" if when_slow == "skip" else "waited for the disk for 2.5 s") in err
    assert ("record.skipped", 5.0) in library.reports or ("record.slowed_s", 2.5) in library.reports


def test_an_end_in_a_hurry(plan, capfd):
    library = RecordLibrary(plan)
    recorder = Recorder(plan, library, 0)
    library.mpidata_trainer_record_write = lambda *_: threading.Event().wait(0.2) and 0
    recorder.start()
    library.come(SAMPLES)
    recorder.finish(0.1)
    assert "it is not whole: the job ended 80 samples too early" in capfd.readouterr().err


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
from test_record import *
plan = make_plan(run=Path({run!r}), record_path=Path({folder!r}))
library = RecordLibrary(plan)
recorder = Recorder(plan, library, 0)
recorder.start()
library.come(SAMPLES[:35])
assert recorder.flush(10)
write = library.mpidata_trainer_record_write
def cut(file, field, *place):
    if field == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, field, *place)
library.mpidata_trainer_record_write = cut
library.come(SAMPLES[35:])
recorder.finish(10)
"""


def test_a_killed_writer_leaves_a_file_that_is_read_and_gone_on_with(plan):
    """Killed in the middle of a sample, with the file open."""
    script = KILLED.format(path=[str(Path(__file__).parent)], run=str(plan.run), folder=str(plan.record_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    check(RecordedDataset(plan.record_path), SAMPLES[:35])
    record(plan, SAMPLES[10:])
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


KILLED_AT_THE_END = """
import os, signal, sys
sys.path[:0] = {path!r}
from test_record import *
resize = h5py.Dataset.resize
def cut(dataset, *given, **named):
    resize(dataset, *given, **named)
    if dataset.name == "/step":
        os.kill(os.getpid(), signal.SIGKILL)
h5py.Dataset.resize = cut
record(make_plan(run=Path({run!r}), record_path=Path({folder!r})), SAMPLES[:35])
"""


def test_a_writer_that_is_killed_while_it_closes_the_file(plan):
    script = KILLED_AT_THE_END.format(
        path=[str(Path(__file__).parent)], run=str(plan.run), folder=str(plan.record_path)
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == -9, done.stderr
    check(RecordedDataset(plan.record_path), SAMPLES[:35])
    record(plan, SAMPLES[10:])
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


def test_each_step_of_cutting_the_columns_leaves_a_file_that_can_be_read(plan, monkeypatch):
    monkeypatch.setattr(record_file, "shrink", lambda *_: None)
    record(plan, SAMPLES[:35])
    (path,) = plan.record_path.iterdir()
    whole, calls = path.read_bytes(), {"pwrite": os.pwrite, "ftruncate": os.ftruncate}

    def cut_after(steps):
        def call(name):
            def counted(*given):
                if len(done) == steps:
                    raise OSError(errno.EIO, "as if killed")
                done.append(name)
                return calls[name](*given)

            return counted

        done = []
        for name in calls:
            monkeypatch.setattr(os, name, call(name))
        with contextlib.suppress(OSError):
            shrink(path, 35)
        monkeypatch.undo()
        return done

    for steps in range(100):
        path.write_bytes(whole)
        done = cut_after(steps)
        check(RecordedDataset(plan.record_path), SAMPLES[:35])
        if len(done) < steps:
            break
    assert done[-1] == "ftruncate" and len(done) > 5 and path.stat().st_size < len(whole)
    with h5py.File(path) as file:
        assert len(file["step"]) == 35


def test_the_file_is_read_while_it_grows(plan):
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
def test_the_workers_of_a_loader(plan, start):
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


def test_an_index_that_is_not_there(plan):
    record(plan, SAMPLES)
    dataset = RecordedDataset(plan.record_path)
    assert int(dataset[-1]["step"]) == 19
    with pytest.raises(IndexError, match="no sample 60: the record holds 60"):
        dataset[60]


def test_what_is_no_record(plan, tmp_path):
    folder = plan.record_path
    with pytest.raises(StreamError, match="samples is no folder"):
        RecordedDataset(folder)
    folder.mkdir()
    with pytest.raises(StreamError, match="no files of a record"):
        RecordedDataset(folder)
    (folder / "trainer-0000.h5").write_bytes(b"something else" * 100)
    with pytest.raises(MpidataError, match="trainer-0000.h5 cannot be read as HDF5"):
        RecordedDataset(folder)
    with h5py.File(folder / "trainer-0000.h5", "w", libver="latest") as file:
        file["x"] = 1
    with pytest.raises(MpidataError, match="is no file of a record"):
        RecordedDataset(folder)


def test_files_that_do_not_belong_together(plan, tmp_path):
    record(plan, SAMPLES)
    other = make_plan(run=Path("/other"), record_path=tmp_path / "other")
    record(other, SAMPLES, 1)
    os.rename(other.record_path / "trainer-0001.h5", plan.record_path / "trainer-0001.h5")
    with pytest.raises(StreamError, match="are records of two runs, .*run and /other"):
        RecordedDataset(plan.record_path)


def test_a_damaged_file(plan):
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


def test_a_sample_too_large_for_hdf5(tmp_path):
    header = Header("run", 0, 1, ("alpha",), (Field("u", "float64", (1 << 29,)),))
    with pytest.raises(MpidataError, match="'u' cannot be recorded: one sample of it has 4294967296 bytes"):
        RecordFile(tmp_path / "x.h5", header)


def test_no_parameters(tmp_path):
    header = Header("run", 0, 1, (), (FIELDS[1],))
    file = RecordFile(tmp_path / "x.h5", header)
    ones = np.ones(1, np.int64)
    file.append(
        Rows(ones, ones, ones.astype(float), np.zeros(1, np.uint8), np.empty((1, 0))),
        lambda fd, field, first, count, offset: os.pwrite(fd, ones.data, offset),
    )
    file.close()
    sample = RecordedDataset(tmp_path)[0]
    assert sample["parameters"].shape == (0,) and int(sample["scalar"]) == 1
