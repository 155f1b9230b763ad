"""Files from other programs are read completely, or an error says what to do."""

import mmap
import struct
import sys
import types
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import torch
from part_files import refused
from pyarrow import ipc, parquet

from mpidata.loaders import part_copies


def test_npz_columns_can_be_selected_beside_unusable_arrays(rows, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3), scalar=1.0, longer=np.arange(4), meta=np.array({"a": 1}, object))
    assert rows(columns=["x"]) == {"x": [0, 1, 2]}
    refused(rows, r"a\.npz: 'meta' holds Python objects.*`columns`", columns=["x", "meta"])
    refused(rows, r"a\.npz: 'scalar' is a single value", columns=["x", "scalar"])
    refused(rows, r"a\.npz: .*`columns`")


def test_complete_arrow_stream_is_read_and_a_truncated_one_is_refused(rows, tmp_path):
    path, table = tmp_path / "a.arrow", pa.table({"x": np.arange(40)})
    with ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=10)
    assert rows() == {"x": list(range(40))}
    whole = path.read_bytes()
    assert whole.endswith(struct.pack("<iI", -1, 0))
    path.write_bytes(whole[:-8])
    refused(rows, r"a\.arrow: is in Arrow's stream format, but its end is missing")


@pytest.mark.parametrize("end", ["arrow", "parquet"])
def test_batches_without_rows_are_skipped(rows, tmp_path, end):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    some, none = pa.record_batch([[[1, 2], [3, 4]]], schema=schema), pa.record_batch([[]], schema=schema)
    if end == "arrow":
        with ipc.new_file(str(tmp_path / "a.arrow"), schema) as file:
            for batch in (none, some, none, some):
                file.write_batch(batch)
    else:
        with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as file:
            for batch in (none, some, none, some):
                file.write_batch(batch)
    assert rows() == {"x": [[1, 2], [3, 4]] * 2}


@pytest.mark.parametrize("end", ["arrow", "parquet", "csv"])
def test_duplicate_column_names_are_refused(rows, tmp_path, end):
    table, path = (
        pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "a", "b"]),
        tmp_path / f"a.{end}",
    )
    if end == "arrow":
        with ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    elif end == "parquet":
        parquet.write_table(table, path)
    else:
        path.write_text("a,a,b\n1,2,3\n")
    refused(rows, rf"a\.{end}: 2 columns have the name 'a'")
    refused(rows, rf"a\.{end}: 2 columns have the name 'a'", columns=["a"])
    assert rows(columns=["b"]) == {"b": [3]}


def test_fixed_shape_tensors_keep_their_shape(rows, tmp_path):
    tensors = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
    parquet.write_table(pa.table({"t": column}), tmp_path / "a.parquet", row_group_size=3)
    assert rows() == {"t": tensors.tolist()}


def test_parts_without_rows_are_skipped_and_counted(rows, job, tmp_path):
    for part, values in enumerate([[], [1, 2], [], [3], []]):
        parquet.write_table(pa.table({"a": pa.array(values, pa.int64())}), tmp_path / f"{part}.parquet")
    for loaders in (1, 3):
        assert rows(loaders=loaders) == {"a": [1, 2, 3]}
    for shuffle in ("rows", "parts"):
        data = job(2).dataset(0, tmp_path, 2, shuffle=shuffle, open_parts=1)
        for _ in range(3):
            assert sorted(v for batch in data for v in batch["a"].tolist()) == [1, 2, 3]
    current = job(1)
    list(current.dataset(0, tmp_path, 2))
    assert sum(value for name, value in current.reported if name == "loaded.parts_without_rows") == 3


def test_hive_partition_folders_are_read_as_columns(rows, tmp_path):
    for year, month, values in ((2019, "01", [1]), (2019, "12", [2]), (2020, "01", [3])):
        folder = tmp_path / f"year={year}" / f"month={month}"
        folder.mkdir(parents=True)
        parquet.write_table(pa.table({"a": values}), folder / "part.parquet")
    assert rows() == {"a": [1, 2, 3]}
    assert rows(columns=["year", "a"]) == {"year": [2019, 2019, 2020], "a": [1, 2, 3]}
    assert rows(columns={"when": "year"}) == {"when": [2019, 2019, 2020]}
    assert rows(f"{tmp_path}/**/*.parquet", ["a", "year"]) == {"a": [1, 2, 3], "year": [2019, 2019, 2020]}
    refused(rows, r"part\.parquet: column 'month' has texts", columns=["month"])
    parquet.write_table(pa.table({"a": [4], "year": [7]}), tmp_path / "year=2020" / "own.parquet")
    assert rows(f"{tmp_path}/year=2020/own.parquet", ["year"]) == {"year": [7]}  # the file's own column


def test_folder_that_contains_only_folders_is_refused(rows, tmp_path):
    (tmp_path / "first").mkdir()
    refused(rows, rf"{tmp_path} holds folders \(first\) but no files. Name .* in them, for example {tmp_path}/\*\*/")


def test_columns_of_several_dtypes_are_not_stacked(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([2**53 + 1]), b=np.array([0.5]))
    refused(rows, r"columns 'a' \(int64\) and 'b' \(float64\) cannot be stacked into 'x'", columns={"x": ["a", "b"]})


@pytest.mark.parametrize("columns", [[], {}, [1], [["a"]], {"x": []}, {"x": [1]}, 3])
def test_columns_argument_without_valid_names_is_refused(rows, tmp_path, columns):
    np.savez(tmp_path / "a.npz", a=np.arange(2))
    refused(rows, "FileDataset: columns is ", columns=columns)


def test_single_name_selects_one_column(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(2), b=np.arange(2), ab=np.arange(2, 4))
    assert rows(columns="ab") == {"ab": [2, 3]}


def masked(rows):
    return {"a": np.ma.masked_equal(rows["a"], 1)}


def test_masked_values_are_refused(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    refused(rows, r"a\.npz: column 'a' has masked values", transform=masked)


def test_columns_that_change_within_a_file_are_refused(rows, tmp_path):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    with ipc.new_file(str(tmp_path / "a.arrow"), schema) as file:
        for lists in ([[1, 2]], [[3, 4, 5]]):
            file.write_batch(pa.record_batch([lists], schema=schema))
    refused(rows, r"a\.arrow: its columns change within the file: x int64\[3\], and x int64\[2\] before")


def write_arrow(path, **columns):
    table = pa.table(columns)
    with ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


def test_arrow_nulls_in_tensors_and_run_end_encodings_are_refused(rows, tmp_path):
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), (2,)), pa.array([[1, None], [2, 3]], pa.list_(pa.int32(), 2))
    )
    write_arrow(tmp_path / "a.arrow", t=tensors)
    refused(rows, r"a\.arrow: column 't' has nulls in lists \(row 0\)")
    encoded = pa.run_end_encoded(pa.int32(), pa.int64())
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [2**53 + 1, None], encoded)
    write_arrow(tmp_path / "a.arrow", t=runs)
    refused(rows, r"a\.arrow: column 't' has nulls \(row 2\)")
    whole = pa.RunEndEncodedArray.from_arrays([2, 3], [2**53 + 1, 5], encoded)
    write_arrow(tmp_path / "a.arrow", t=whole)
    assert rows() == {"t": [2**53 + 1, 2**53 + 1, 5]}


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "values of MonthDayNano"),
        (pa.array([["x", "y"], ["z", "w"]]), "lists of texts"),
        (pa.array([[{"x": 1}], [{"x": 2}]]), "lists of values of dict"),
        (pa.array([{"x": 2**53 + 1}, {"x": None}]), "values of dict"),
        (pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]), "values of"),
        (pa.array([b"a", b"b"]), "texts"),
    ],
)
def test_arrow_columns_without_numbers_are_reported_with_their_type(rows, tmp_path, column, says):
    write_arrow(tmp_path / "a.arrow", odd=column, a=list(range(len(column))))
    refused(rows, rf"a\.arrow: column 'odd' has {says}")
    assert rows(columns="a") == {"a": list(range(len(column)))}


def test_arrow_list_views_are_read_as_lists(rows, tmp_path):
    write_arrow(tmp_path / "a.arrow", x=pa.array([[1, 2], [3, 4]], pa.list_view(pa.int64())))
    assert rows() == {"x": [[1, 2], [3, 4]]}


def test_data_after_the_first_array_or_stream_is_refused(rows, tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        for _ in range(2):
            np.save(file, np.arange(3))
    refused(rows, r"a\.npy: has more data after its array")
    (tmp_path / "a.npy").unlink()
    with open(tmp_path / "a.arrow", "wb") as file:
        for _ in range(2):
            with ipc.new_stream(file, (table := pa.table({"x": [1, 2]})).schema) as stream:
                stream.write_table(table)
    refused(rows, r"a\.arrow: has more data after the end of its Arrow stream")


def test_npz_members_that_are_not_arrays_are_named(rows, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr("readme.txt", "text")
    refused(rows, r"a\.npz: 'readme\.txt' is not an array\. Name the other ones")
    assert rows(columns="x") == {"x": [0, 1, 2]}


def in_place(rows):
    rows["a"] += 1
    return rows


def no_array(rows):
    return {"a": torch.ones(len(rows["a"]), requires_grad=True)}


def single(rows):
    return {"a": np.array(3)}


@pytest.mark.parametrize("end", ["parquet", "npz", "csv"])
def test_transform_may_work_in_place_for_every_format(rows, tmp_path, end):
    if end == "parquet":
        parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    elif end == "npz":
        np.savez(tmp_path / "a.npz", a=np.array([1, 2]))
    else:
        (tmp_path / "a.csv").write_text("a\n1\n2\n")
    assert rows(transform=in_place) == {"a": [2, 3]}


def test_transform_that_returns_no_array_is_refused(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    refused(rows, r"a\.npz: transform returned Tensor as column 'a', which cannot become an array", transform=no_array)
    refused(rows, r"a\.npz: transform returned a single value as column 'a'", transform=single)


def test_nulls_in_arrow_columns_of_a_reader_are_refused(rows, tmp_path, monkeypatch):
    module = types.SimpleNamespace(read=lambda path: [{"x": pa.chunked_array([[2**53 + 1], [None]])}])
    monkeypatch.setitem(sys.modules, "arrow_reader", module)
    (tmp_path / "a.bin").write_text("any")
    refused(rows, r"a\.bin: column 'x' has nulls \(row 1\)", reader="arrow_reader:read")


class NoHugePages(mmap.mmap):
    """As on a kernel built without huge pages."""

    def madvise(self, *_):
        raise OSError(22, "Invalid argument")


def test_rows_are_stored_if_the_kernel_has_no_huge_pages(rows, tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    monkeypatch.setattr(part_copies.mmap, "mmap", NoHugePages)
    assert rows() == {"a": [0, 1, 2]}


def test_hive_partition_without_a_value_is_refused(rows, tmp_path):
    for year in ("2019", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        parquet.write_table(pa.table({"a": [1]}), tmp_path / f"year={year}" / "p.parquet")
    refused(rows, r"p\.parquet: (column 'year' has nulls \(row 0\)|its columns are not those)", columns="year")
