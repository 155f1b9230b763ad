"""The record of a trainer: the contents of its file, its owner, and how it continues."""

import os
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest
from fake_library import FIELDS, make_plan
from recording import SAMPLES, RecordLibrary, check, record

from mpidata import RecordedDataset
from mpidata.errors import MpidataError
from mpidata.record import columns as record_columns
from mpidata.record import file as record_file
from mpidata.record import writer
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.record.recorded_steps import RecordedSteps, check_empty
from mpidata.record.shrink import repack
from mpidata.record.writer import Recorder
from mpidata.run.plan import Field


def test_recorded_samples_are_read_back_unchanged(plan, capfd):
    samples = [SAMPLES[i] for i in np.random.default_rng(0).permutation(len(SAMPLES))]
    library = record(plan, samples)
    assert library.limit == (1, 65536, 256 << 20, False) and library.why is None
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
def test_samples_in_many_chunks_are_read_back(plan, monkeypatch, chunk_bytes):
    """The chunks of several fields are interleaved."""
    monkeypatch.setattr(record_columns, "TOGETHER_BYTES", chunk_bytes)
    monkeypatch.setattr(record_columns, "EVENLY_BYTES", chunk_bytes)
    samples = [(0, step) for step in range(300)]
    record(plan, samples)
    check(RecordedDataset(plan.record_path), samples)


def write(path, header, count):
    """Write a file of random samples; return them with shape (count, bytes of a sample)."""
    sizes = [int(np.prod(f.shape, dtype=int)) * np.dtype(f.dtype).itemsize for f in header.fields]
    values = np.random.default_rng(count).integers(0, 256, (count, sum(sizes)), np.uint8)
    first = np.cumsum([0, *sizes])
    file, done = RecordFile(path, header), 0
    while done < count:
        some = min(count - done, 1 + done % 37)
        ids = np.arange(done, done + some)

        def put(fd, field, begin, n, at, done=done):
            part = values[done + begin : done + begin + n, first[field] : first[field] + sizes[field]]
            assert os.pwrite(fd, part.tobytes(), at) == part.size

        file.append(Rows(ids * 0, ids, ids * 0.5, np.zeros(some, np.uint8), np.full((some, 1), 0.5)), put)
        done += some
    file.close()
    return values


def read(folder, header):
    """Read what `write` has written."""
    with h5py.File(next(folder.glob("*.h5"))) as file:
        columns = [file["fields"][f.name][()] for f in header.fields]
    return np.concatenate([np.ascontiguousarray(c).view(np.uint8).reshape(len(c), -1) for c in columns], axis=1)


CHANCE = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("count", "size", "fields"),
    [
        *((20, 12800, 6), (1, 1, 1), (5000, 1, 1), (1, 1 << 20, 1), (60, 1 << 20, 1), (3, 400, 300), (2000, 8, 100)),
        *((int(5000 ** CHANCE.random()), int((1 << 20) ** CHANCE.random()), 1 + i % 4) for i in range(12)),
    ],
)
def test_a_file_is_hardly_longer_than_its_contents(tmp_path, count, size, fields):
    """The first of `fields` fields has `size` bytes, the others about a half, a third and so on."""
    count = max(1, min(count, (64 << 20) // size))
    shapes = [(max(1, size // (i + 1)),) for i in range(fields)]
    header = Header("run", 0, 1, ("alpha",), tuple(Field(f"u{i}", "uint8", shape) for i, shape in enumerate(shapes)))
    values = write(tmp_path / "x.h5", header, count)
    assert os.listdir(tmp_path) == ["x.h5"]
    assert os.path.getsize(tmp_path / "x.h5") <= 1.2 * values.size + 1e6
    assert np.array_equal(read(tmp_path, header), values)
    dataset = RecordedDataset(tmp_path)
    assert list(dataset.fields.values()) == list(header.fields) and len(dataset) == count
    last = dataset[count - 1]
    assert (int(last["step"]), float(last["time"]), last["parameters"].tolist()) == (
        count - 1,
        (count - 1) * 0.5,
        [0.5],
    )


@pytest.mark.parametrize("failing", ["os.rename", "os.fsync", "new_file", "io.BytesIO"])
def test_file_that_cannot_be_shortened_stays_readable(tmp_path, monkeypatch, failing):
    def fail(*_):
        raise MemoryError if failing == "io.BytesIO" else OSError(28, "No space left on device")

    header = Header("run", 0, 1, ("alpha",), FIELDS)
    monkeypatch.setattr(record_file, "repack", lambda *given: (monkeypatch.setattr(*patched), repack(*given)))
    patched = f"mpidata.record.shrink.{failing}", fail
    values = write(tmp_path / "x.h5", header, 100)
    assert os.path.getsize(tmp_path / "x.h5") > 1 << 20 and os.listdir(tmp_path) == ["x.h5"]
    assert np.array_equal(read(tmp_path, header), values) and len(RecordedDataset(tmp_path)) == 100


@pytest.mark.parametrize("megabytes", [8, 100])
def test_large_field_beside_a_scalar_does_not_inflate_the_file(tmp_path, megabytes):
    """Neither field reserves the rows that suit the other, so the file is about as long as its contents."""
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
    assert len(RecordedDataset(tmp_path)) == 3  # read while the file grows
    file.close()
    dataset = RecordedDataset(tmp_path)
    assert [(float(s["large"].min()), float(s["large"].max()), float(s["small"])) for s in dataset] == [
        (i + 0.5, i + 0.5, float(i)) for i in range(3)
    ]
    assert os.stat(file.path).st_blocks * 512 < 4 * shape[0] * 8


def test_resumed_run_records_only_new_samples(plan):
    """Two trainers record first, then three; each finds what the others have of its share."""
    for trainer in range(2):
        record(make_plan(**vars(plan) | {"trainers": 2}), [s for s in SAMPLES[:50] if sum(s) % 2 == trainer], trainer)
    for trainer in range(3):
        library = record(
            make_plan(**vars(plan) | {"trainers": 3}), [s for s in SAMPLES[30:] if sum(s) % 3 == trainer], trainer
        )
        assert library.reports[0] == ("record.samples", sum(sum(s) % 3 == trainer for s in SAMPLES))  # of all starts
    names = ["trainer-0000-2.h5", "trainer-0000.h5", "trainer-0001-2.h5", "trainer-0001.h5", "trainer-0002.h5"]
    assert sorted(os.listdir(plan.record_path)) == names
    rows = 0
    for name in names:
        with h5py.File(plan.record_path / name) as file:
            rows += len(file["step"])
    assert rows == len(SAMPLES)
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


def test_record_of_another_run_is_refused(plan):
    check_empty(plan.record_path)
    record(plan, SAMPLES)
    with pytest.raises(MpidataError, match="belongs to another run, .*run. Move the folder"):
        check_empty(plan.record_path)
    with pytest.raises(MpidataError, match="belongs to another run, .*run. Move the folder"):
        Recorder(make_plan(**vars(plan) | {"run": Path("/other")}), RecordLibrary(plan), 0)
    with pytest.raises(
        MpidataError, match="have field scalar .int64, ... and not temperature .float32, .2, 3..\\. Set"
    ) as caught:
        Recorder(make_plan(**vars(plan) | {"fields": FIELDS[::-1]}), RecordLibrary(plan), 0)
    assert "trainer-0000.h5" in str(caught.value)
    check(RecordedDataset(plan.record_path), [s for s in SAMPLES if s[0] < 3])


def test_only_one_of_two_concurrent_runs_gets_the_record(plan, monkeypatch):
    looked = threading.Barrier(2)
    monkeypatch.setattr(writer, "RecordedSteps", lambda *given: (RecordedSteps(*given), looked.wait(10))[0])

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


def test_sample_too_large_for_hdf5_is_refused(tmp_path):
    header = Header("run", 0, 1, ("alpha",), (Field("u", "float64", (1 << 29,)),))
    with pytest.raises(MpidataError, match="'u' cannot be recorded: one sample has 4294967296 bytes"):
        RecordFile(tmp_path / "x.h5", header)


def test_samples_without_parameters_are_recorded(tmp_path):
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
