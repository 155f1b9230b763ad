"""The record of fields with lengths: the contents of its file, and what is read from a damaged file."""

import json
import os
from collections.abc import Iterator

import h5py
import numpy as np
import pytest
import torch
from fake_library import FIELDS, make_plan
from recording import FIELDS_WITH_LENGTHS, SAMPLES, is_given, lengths_of, make_plan_with_lengths, record, values_of
from recording import check as check_samples
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset

from mpidata import PackedCollate, RecordedDataset
from mpidata.dtypes import numpy_dtype, valid
from mpidata.errors import MpidataError, StreamError
from mpidata.native.constants import DTYPES
from mpidata.record import columns as record_columns
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.record.recorded_steps import RecordedSteps
from mpidata.run.plan import Field
from mpidata.tensors import array_of

WITH_LENGTHS = pytest.mark.parametrize("plan", [make_plan_with_lengths], indirect=True)
TRAINING = [sample for sample in SAMPLES if sample[0] < 3]


@WITH_LENGTHS
def test_samples_with_lengths_are_read_back_unchanged(plan):
    samples = [SAMPLES[i] for i in np.random.default_rng(0).permutation(len(SAMPLES))]
    record(plan, samples)
    dataset = RecordedDataset(plan.record_path)
    assert tuple(dataset.fields.values()) == FIELDS_WITH_LENGTHS
    check_samples(dataset, TRAINING)
    check_samples(RecordedDataset(plan.record_path, validation=True), [s for s in SAMPLES if s[0] == 3])


@WITH_LENGTHS
def test_file_follows_the_documented_layout(plan):
    """Any tool can read the file."""
    record(plan, SAMPLES)
    with h5py.File(plan.record_path / "trainer-0000.h5") as file:
        assert file.attrs["version"] == 2
        described = json.loads(file.attrs["header"])["fields"]
        assert described[1] == {
            "name": "edge_index", "dtype": "int64", "shape": [2, "edges"], "index": "nodes", "base": 1
        }  # fmt: skip
        assert described[9] == {"name": "pressure", "dtype": "float32", "shape": ["nodes"], "optional": True}
        assert file["given/drag"].dtype == np.uint8 and file["fields/weights"].attrs["dtype"] == "bfloat16"
        nodes, edges = (np.concatenate([[0], np.cumsum(file["lengths"][name])]) for name in ("nodes", "edges"))
        assert file["fields/xy"].shape == (nodes[-1], 2)
        for i, (simulation, step) in enumerate(zip(file["simulation"], file["step"], strict=True)):
            lengths = lengths_of(FIELDS_WITH_LENGTHS, simulation, step)
            assert {name: file["lengths"][name][i] for name in lengths} == lengths
            wanted = {f.name: values_of(f, lengths, simulation, step) for f in FIELDS_WITH_LENGTHS}
            assert np.array_equal(file["fields/xy"][nodes[i] : nodes[i + 1]], wanted["xy"])
            edge_index = file["fields/edge_index"][2 * edges[i] : 2 * edges[i + 1]].reshape(2, -1)
            assert np.array_equal(edge_index, wanted["edge_index"])
            assert np.array_equal(file["fields/inside"][nodes[i] : nodes[i + 1]], wanted["inside"])
            assert np.array_equal(file["fields/drag"][i], wanted["drag"])
            for field in FIELDS_WITH_LENGTHS[9:]:
                assert file[f"given/{field.name}"][i] == is_given(field, simulation, step)


@WITH_LENGTHS
@pytest.mark.parametrize("chunk_bytes", [50, 5000])
def test_samples_that_span_parts_of_the_file_are_read_back(plan, monkeypatch, chunk_bytes):
    for name in ("TOGETHER_BYTES", "EVENLY_BYTES"):
        monkeypatch.setattr(record_columns, name, chunk_bytes)
    pieces = []
    write = RecordFile._write_pieces
    monkeypatch.setattr(RecordFile, "_write_pieces", lambda *given: (pieces.append(given), write(*given)))
    samples = [(0, step) for step in range(60)]
    record(plan, samples)
    assert pieces
    check_samples(RecordedDataset(plan.record_path), samples)


@WITH_LENGTHS
def test_resumed_run_records_only_new_samples(plan):
    """Two trainers record first, then three."""
    for trainers, samples in ((2, SAMPLES[:50]), (3, SAMPLES[30:])):
        for trainer in range(trainers):
            one = make_plan(**vars(plan) | {"trainers": trainers})
            record(one, [s for s in samples if sum(s) % trainers == trainer], trainer)
    rows = 0
    for path in plan.record_path.iterdir():
        with h5py.File(path) as file:
            rows += len(file["step"])
    assert rows == len(SAMPLES)
    check_samples(RecordedDataset(plan.record_path), TRAINING)


def draw_fields(chance: np.random.Generator) -> Iterator[Field]:
    """Draw one to five fields of any dtype, some optional, some with a length, which varies in any dimension."""
    for number in range(chance.integers(1, 6)):
        shape = chance.integers(1, 5, chance.integers(0, 4)).tolist()
        if chance.random() < 0.7:
            shape.insert(chance.integers(0, len(shape) + 1), ["a", "b"][chance.integers(2)])
        dtype = list(DTYPES)[chance.integers(len(DTYPES))]
        yield Field(f"u{number}", dtype, tuple(shape), optional=chance.random() < 0.3)


def write(path, header, count, most, chance):
    """Write a file of samples with random bytes; return these by field and sample, and the numbers."""
    lengths = chance.integers(0, most + 1, (count, len(header.lengths)))
    given = chance.integers(0, 2, (count, len(header.numbers) - len(header.lengths)))
    numbers = np.hstack([lengths, given])
    sizes = []
    for field in header.fields:
        of = lengths[:, header.lengths.index(field.length)] if field.length else np.ones(count, int)
        sizes.append(of * field.nbytes)
    values = [[chance.bytes(size) for size in of] for of in sizes]
    file, done = RecordFile(path, header), 0
    while done < count:
        ids = np.arange(done, min(count, done + 1 + int(chance.integers(40))))

        def put(descriptor, field, first, n, at, done=done):
            joined = b"".join(values[field][done + first : done + first + n])
            assert os.pwrite(descriptor, joined, at) == len(joined)

        none = np.zeros(len(ids), np.uint8)
        file.append(Rows(ids * 0, ids, ids * 0.5, none, np.full((len(ids), 1), 0.5), numbers[ids]), put)
        done += len(ids)
    file.close()
    return values, numbers


@pytest.mark.parametrize("seed", range(8))
def test_a_file_is_hardly_longer_than_its_contents(tmp_path, seed):
    chance = np.random.default_rng(seed)
    fields = (*draw_fields(chance), Field("last", "float32", ("a", 2)))
    header = Header("run", 0, 1, ("alpha",), fields)
    count, most = int(1000 ** chance.random()), [0, 3, 2000, 20000][seed % 4]
    count = min(count, (4 << 20) // (1 + most * sum(field.nbytes for field in fields)) + 1)
    values, numbers = write(tmp_path / "x.h5", header, count, most, chance)
    size = sum(len(part) for of in values for part in of) + count * (8 * len(header.lengths) + 33)
    assert os.path.getsize(tmp_path / "x.h5") <= 1.1 * size + 1e6
    dataset = RecordedDataset(tmp_path)
    assert len(dataset) == count
    for i in range(count):
        sample, of = dataset[i], dict(zip(header.numbers, numbers[i].tolist(), strict=True))
        assert {name: int(sample[name]) for name in of} == of
        for field, parts in zip(fields, values, strict=True):
            assert sample[field.name].shape == field.extents(of)
            wanted = valid(np.frombuffer(parts[i], numpy_dtype(field.dtype)))
            assert array_of(sample[field.name]).tobytes() == wanted.tobytes(), (field, i)


def test_record_without_lengths_keeps_the_version_1_header(tmp_path):
    RecordFile(tmp_path / "x.h5", Header("run", 3, 2, ("alpha",), FIELDS)).close()
    with h5py.File(tmp_path / "x.h5") as file:
        assert file.attrs["version"] == 1 and "lengths" not in file
        assert file.attrs["header"] == (
            '{"run": "run", "trainer": 3, "every": 2, "parameters": ["alpha"], "fields": [{"name": "temperature", '
            '"dtype": "float32", "shape": [2, 3]}, {"name": "scalar", "dtype": "int64", "shape": []}]}'
        )


def test_row_too_large_for_hdf5_is_refused(tmp_path):
    header = Header("run", 0, 1, ("alpha",), (Field("u", "float64", ("nodes", 1 << 29)),))
    with pytest.raises(MpidataError, match="'u' cannot be recorded: one index of 'nodes' has 4294967296 bytes"):
        RecordFile(tmp_path / "x.h5", header)


@WITH_LENGTHS
def test_record_with_another_index_base_is_refused(plan):
    record(plan, SAMPLES[:5])
    fields = tuple(Field(f.name, f.dtype, f.shape, f.index) for f in FIELDS_WITH_LENGTHS)
    header = Header(str(plan.run), 0, 1, plan.parameters, fields)
    with pytest.raises(MpidataError, match="they have .*index nodes from 0. and not edge_index .*index nodes from 1"):
        RecordedSteps(plan.record_path, header, 0)


def damage_lengths(file, row, value):
    file["lengths/nodes"][row] = value


def cut(file, name):
    values = file[name][:-1]
    del file[name]
    file[name] = values


def change_header(file, old, new):
    assert old in file.attrs["header"]
    file.attrs["header"] = file.attrs["header"].replace(old, new)


@WITH_LENGTHS
@pytest.mark.parametrize(
    ("damage", "given", "sentence"),
    [
        (damage_lengths, (3, -1), "lengths/nodes makes no sense"),
        (damage_lengths, (3, 1 << 62), "lengths/nodes makes no sense"),
        (damage_lengths, (slice(0, 79), 200), "lengths/nodes has more than the fields"),
        (cut, ("lengths/nodes",), "lengths/nodes makes no sense"),
        (cut, ("fields/flags",), "lengths/nodes has more than the fields"),
        (lambda file: file.__delitem__("lengths/edges"), (), "edges"),
        (lambda file: file.__delitem__("lengths"), (), ""),
        (change_header, ('"shape": ["nodes"]', '"shape": [""]'), "header is invalid"),
        (change_header, ('"shape": ["nodes"]', '"shape": ["nodes", "edges"]'), "header is invalid"),
        (change_header, ('"index": "nodes"', '"index": "faces"'), "header is invalid"),
        (change_header, ('"index": "nodes"', '"index": ["nodes"]'), ""),
        (change_header, ('"base": 1', '"base": "1"'), "header is invalid"),
        (change_header, ('"base": 1', '"bass": 1'), ""),
        (change_header, ('"optional": true', '"optional": 1'), "header is invalid"),
        (cut, ("given/drag",), "given/drag has 79 of 80 rows"),
        (lambda file: file.__delitem__("given/drag"), (), "drag"),
    ],
)
def test_damaged_file_is_refused(plan, damage, given, sentence):
    record(plan, SAMPLES)
    path = plan.record_path / "trainer-0000.h5"
    with h5py.File(path, "r+") as file:
        damage(file, *given)
    with pytest.raises(MpidataError, match=f"trainer-0000.h5 is damaged: .*{sentence}"):
        RecordedDataset(plan.record_path)


@WITH_LENGTHS
def test_samples_with_damaged_indices_are_refused(plan):
    """Such indices would read outside the sample."""
    record(plan, SAMPLES)
    with h5py.File(plan.record_path / "trainer-0000.h5", "r+") as file:
        for place, value in ((0, -1), (-1, 1 << 40)):
            file["fields/edge_index"][place] = value
        ends = np.cumsum(file["lengths/edges"])
    first, last = (int(np.searchsorted(ends, 1)), int(np.searchsorted(ends, ends[-1])))
    assert SAMPLES[last][0] == 3
    for index, validation in ((first, False), (last - 60, True)):
        dataset = RecordedDataset(plan.record_path, validation=validation)
        with pytest.raises(StreamError, match=f"Sample {index} cannot be read from row .*h5: edge_index has an index"):
            dataset[index]
        assert len([dataset[i] for i in range(20) if i != index]) >= 19


class Padded(Dataset):
    """Samples padded to one shape, as by a user."""

    def __init__(self, recorded):
        self.recorded = recorded

    def __len__(self):
        return len(self.recorded)

    def __getitem__(self, index):
        padded = torch.zeros(300)
        padded[: self.recorded[index]["nodes"]] = 1
        return padded


@WITH_LENGTHS
def test_error_of_a_stacking_loader_names_packed_collate(plan):
    record(plan, SAMPLES)
    dataset = RecordedDataset(plan.record_path)
    for of in (dataset, Subset(dataset, [5, 3]), ConcatDataset([dataset, dataset])):
        with pytest.raises(StreamError, match=r"stacks the samples of RecordedDataset, .* its own 'nodes'"):
            next(iter(DataLoader(of, batch_size=2)))
    with pytest.raises(StreamError, match=r"collate_fn=mpidata.PackedCollate\(dataset.fields\)"):
        next(iter(DataLoader(dataset, batch_size=2, num_workers=1)))
    joined = next(iter(DataLoader(dataset, batch_size=2, collate_fn=PackedCollate(dataset.fields))))
    assert joined["nodes"].shape == (2,)
    assert next(iter(DataLoader(dataset, batch_size=None)))["nodes"].shape == ()
    assert next(iter(DataLoader(Padded(dataset), batch_size=2))).shape == (2, 300)
