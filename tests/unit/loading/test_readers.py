"""The readers of part files: row counts and rows in every format, and files that are not what they seem."""

import sys
import types

import h5py
import numpy as np
import pytest
from fake_library import make_plan
from recording import SAMPLES, content, make_plan_with_lengths, record

from mpidata.errors import StreamError
from mpidata.loading.formats import chunk
from mpidata.loading.formats.readers import check_format, describe, read_rows


def count_rows(path, reader, names=None):
    described = describe(path, reader, names, {})
    return None if described is None else described[0]


def read(path, names=None, reader=None, keys=()):
    """Return all columns, and the number of pieces in which they came."""
    chunks = list(read_rows(str(path), reader, names, dict(keys)))
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}, len(chunks)


@pytest.fixture
def in_pieces(monkeypatch):
    """Read about 10 rows of the tests' files at a time."""
    monkeypatch.setattr(chunk, "_CHUNK_BYTES", 200)


def test_npy_is_one_column_read_in_pieces(tmp_path, in_pieces):
    array = np.arange(100, dtype=np.float32).reshape(25, 4)
    np.save(tmp_path / "a.npy", array)
    assert count_rows(str(tmp_path / "a.npy"), None) == 25
    columns, pieces = read(tmp_path / "a.npy")
    assert list(columns) == ["data"] and np.array_equal(columns["data"], array) and pieces == 3


def test_structured_npy_has_a_column_per_field(tmp_path, in_pieces):
    rows = np.zeros(30, [("x", "f4", (3,)), ("y", "i8")])
    rows["x"], rows["y"] = np.arange(90).reshape(30, 3), np.arange(30)
    np.save(tmp_path / "a.npy", rows)
    columns, pieces = read(tmp_path / "a.npy", ["y", "x"])
    assert np.array_equal(columns["x"], rows["x"]) and np.array_equal(columns["y"], rows["y"]) and pieces > 1


def test_npz_reads_only_the_named_columns(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.ones((5, 2)), y=np.arange(5), other=np.zeros(9))
    columns, _ = read(tmp_path / "a.npz", ["y", "x"])
    assert sorted(columns) == ["x", "y"] and columns["y"].tolist() == [0, 1, 2, 3, 4]


def test_hdf5_reads_datasets_in_groups_in_pieces(tmp_path, in_pieces):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["in/x"], file["y"] = np.arange(80.0).reshape(40, 2), np.arange(40)
        file["scalar"] = 1.0
    assert count_rows(str(tmp_path / "a.h5"), None) == 40
    columns, pieces = read(tmp_path / "a.h5")
    assert sorted(columns) == ["in/x", "y"] and pieces > 1
    assert np.array_equal(columns["in/x"], np.arange(80.0).reshape(40, 2)) and columns["y"].tolist() == [*range(40)]


def test_mpidata_records_are_read_without_rows_that_hold_no_sample(tmp_path, in_pieces):
    plan = make_plan(run=tmp_path / "run", record_path=tmp_path / "samples")
    record(plan, SAMPLES)
    (path,) = (tmp_path / "samples").iterdir()
    with h5py.File(path, "a") as file:
        held = int((file["simulation"][:] >= 0).sum())
        file["simulation"][3] = -1  # a sample whose writing was cut short
        room = len(file["simulation"])
    assert room >= held
    assert count_rows(str(path), None) == held - 1
    columns, _ = read(path, ["fields/temperature", "simulation", "step", "parameters"])
    where = list(zip(columns["simulation"].tolist(), columns["step"].tolist(), strict=True))
    assert len(where) == len(set(where)) == held - 1 and set(where) < set(SAMPLES)
    for (simulation, step), field, parameters in zip(
        where, columns["fields/temperature"], columns["parameters"], strict=True
    ):
        assert np.array_equal(field, content("temperature", simulation, step, (2, 3), field.dtype))
        assert parameters.tolist() == [simulation, -step]


def test_recorded_fields_with_lengths_are_refused(tmp_path):
    plan = make_plan_with_lengths(run=tmp_path / "run", record_path=tmp_path / "samples")
    record(plan, SAMPLES)
    (path,) = (tmp_path / "samples").iterdir()
    for names in (None, ["fields/xy"], ["/fields/xy", "step"]):
        with pytest.raises(StreamError, match=r"fields/xy' has its own number of 'nodes'.*RecordedDataset"):
            count_rows(str(path), None, names)
    columns, _ = read(path, ["fields/drag", "given/drag", "lengths/nodes"])
    assert columns["fields/drag"].shape == (80, 2) and columns["lengths/nodes"].shape == (80,)


def rows_of(path):
    with open(path) as file:
        for line in file:
            numbers = [int(word) for word in line.split()]
            yield {"y": numbers, "twice": np.array(numbers) * 2}


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("my_format")
    module.rows_of, module.lists_of = rows_of, lambda path: [[1, 2]]
    monkeypatch.setitem(sys.modules, "my_format", module)


def test_reader_function_reads_any_format(tmp_path, module):
    (tmp_path / "a.log").write_text("1 2 3\n4 5\n")
    check_format(str(tmp_path / "a.log"), "my_format:rows_of")
    assert count_rows(str(tmp_path / "a.log"), "my_format:rows_of") is None
    columns, pieces = read(tmp_path / "a.log", ["y"], "my_format:rows_of")
    assert columns["y"].tolist() == [1, 2, 3, 4, 5] and list(columns) == ["y"] and pieces == 2


def test_invalid_results_of_a_reader_function_are_reported(tmp_path, module):
    (tmp_path / "a.log").write_text("1 2 3\n")
    with pytest.raises(StreamError, match=r"a\.log: the reader returned list, not a dict of arrays"):
        read(tmp_path / "a.log", None, "my_format:lists_of")
    with pytest.raises(StreamError, match=r"a\.log: there is no column 'z'\. It has 'y', 'twice'"):
        read(tmp_path / "a.log", ["z"], "my_format:rows_of")


@pytest.mark.parametrize("reader", ["my_format:missing", "no_such_module:rows_of"])
def test_missing_reader_function_is_named(tmp_path, module, reader):
    with pytest.raises(StreamError, match=f'reader="{reader}" cannot be imported'):
        read(tmp_path / "a.log", None, reader)


@pytest.mark.parametrize("end", ["parquet", "arrow", "feather", "csv", "h5", "npy", "npz"])
@pytest.mark.parametrize("content", [b"", b"\x00\x93 no such file \xff" * 9], ids=["empty", "other"])
def test_file_of_another_format_is_named_when_its_rows_are_counted(tmp_path, end, content):
    (tmp_path / f"a.{end}").write_bytes(content)
    with pytest.raises(
        StreamError, match=rf"a\.{end}: (cannot be read: .* recreate the part|holds no)|a.h5 cannot be read as HDF5"
    ):
        if not count_rows(str(tmp_path / f"a.{end}"), None):
            raise StreamError(f"a.{end}: holds no rows")  # as the caller that counts reports it


def test_truncated_file_is_named(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1000))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StreamError, match=r"a\.npy: cannot be read"):
        count_rows(str(tmp_path / "a.npy"), None)


class Broken(Exception):
    """An exception that only the user's reader knows."""


@pytest.mark.parametrize("at_once", [True, False])
def test_exception_of_a_reader_is_reported_in_one_line(tmp_path, monkeypatch, at_once):
    def read(path):
        if at_once:
            raise Broken("no header\nat all")
        return raise_later()

    def raise_later():
        yield {"a": np.zeros(3)}
        raise Broken("no header\nat all")

    monkeypatch.setitem(sys.modules, "own_reader", types.SimpleNamespace(read=read))
    with pytest.raises(StreamError) as caught:
        list(read_rows(str(tmp_path / "x.bin"), "own_reader:read", None, {}))
    said = "x.bin: reader own_reader:read has raised Broken: no header at all. Correct the reader, or omit the part"
    assert said in str(caught.value)
