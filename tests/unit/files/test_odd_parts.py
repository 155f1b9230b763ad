"""Files as other programs leave them: they are read whole, or a sentence says what to do."""

import mmap
import struct
import sys
import types
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import ipc, parquet

from mpidata.errors import StreamError
from mpidata.files import holding


@pytest.fixture
def rows(job, tmp_path):
    """All batches of one epoch in order, as lists."""

    def read(paths=tmp_path, columns=None, loaders=1, **settings):
        data = job(loaders).dataset(0, paths, 100, columns, shuffle=None, **settings)
        batches = [{name: tensor.tolist() for name, tensor in batch.items()} for batch in data]
        return {name: sum((batch[name] for batch in batches), []) for name in batches[0]}

    return read


def refused(rows, says, *args, **settings):
    with pytest.raises(StreamError, match=says):
        rows(*args, **settings)


def test_hdf5_named_columns_may_have_others_beside_them(rows, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["axis"], file["scalar"] = np.arange(3), np.arange(7), 1.0
    refused(rows, r"a\.h5: .* rows, but .* Name those that belong together: `columns`")
    assert rows(columns=["x"]) == {"x": [0, 1, 2]}
    refused(rows, r"a\.h5: 'scalar' is a single value", columns=["x", "scalar"])


def test_hdf5_names_lead_through_links_and_may_begin_with_a_slash(rows, tmp_path):
    with h5py.File(tmp_path / "other.hdf", "w") as file:
        file["far"] = np.arange(3) * 10
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = np.arange(3)
        file["hard"] = file["g/x"]
        file["soft"], file["external"] = h5py.SoftLink("/g/x"), h5py.ExternalLink("other.hdf", "far")
    path = str(tmp_path / "a.h5")
    names = ["/g/x", "g/x", "hard", "soft", "external"]
    assert rows(path, names) == {**dict.fromkeys(names, [0, 1, 2]), "external": [0, 10, 20]}
    assert rows(path) == {"g/x": [0, 1, 2], "external": [0, 10, 20]}  # each once
    refused(rows, r"a\.h5: there is no column 'g/y'. It has 'g/x', 'external'", path, ["g/y"])
    refused(rows, r"a\.h5: 'g' is a group", path, ["g"])
    (tmp_path / "other.hdf").unlink()
    refused(rows, r"a\.h5: 'external' is a link that leads nowhere", path)
    assert rows(path, ["hard"]) == {"hard": [0, 1, 2]}


def test_hdf5_groups_that_hold_each_other_are_gone_through_once(rows, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = np.arange(2)
        file["g/up"] = file["/"]
    assert rows() == {"g/x": [0, 1]}


def test_hdf5_virtual_rows_whose_file_is_missing_are_not_filled_up(rows, tmp_path):
    with h5py.File(tmp_path / "source.hdf", "w") as file:
        file["x"] = np.arange(1, 4)
    layout = h5py.VirtualLayout((3,), np.int64)
    layout[:] = h5py.VirtualSource("source.hdf", "x", (3,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
    assert rows(str(tmp_path / "a.h5")) == {"x": [1, 2, 3]}
    (tmp_path / "source.hdf").unlink()
    refused(rows, r"a\.h5: 'x' has its rows in .*source\.hdf, which is not there", str(tmp_path / "a.h5"))


@pytest.mark.parametrize("optional", [False, True])
def test_hdf5_without_the_filter_names_it(rows, tmp_path, monkeypatch, optional):
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk((3,))
    flag = h5py.h5z.FLAG_OPTIONAL if optional else h5py.h5z.FLAG_MANDATORY
    settings.set_filter(h5py.h5z.FILTER_DEFLATE, flag, (4,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space = h5py.h5s.create_simple((3,))
        h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT64, space, settings))[:] = np.arange(3)
    assert rows() == {"x": [0, 1, 2]}
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: False)
    if optional:  # the rows may have been stored without it, as here
        assert rows() == {"x": [0, 1, 2]}
    else:
        refused(rows, r"a\.h5: 'x' is compressed with a filter .*: 1 .*hdf5plugin.*HDF5_PLUGIN_PATH")


def test_npz_named_columns_may_have_others_beside_them(rows, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3), scalar=1.0, longer=np.arange(4), meta=np.array({"a": 1}, object))
    assert rows(columns=["x"]) == {"x": [0, 1, 2]}
    refused(rows, r"a\.npz: 'meta' holds objects of Python.*`columns`", columns=["x", "meta"])
    refused(rows, r"a\.npz: 'scalar' is a single value", columns=["x", "scalar"])
    refused(rows, r"a\.npz: .*`columns`")


def test_an_arrow_stream_is_read_and_one_that_was_cut_off_is_refused(rows, tmp_path):
    path, table = tmp_path / "a.arrow", pa.table({"x": np.arange(40)})
    with ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=10)
    assert rows() == {"x": list(range(40))}
    whole = path.read_bytes()
    assert whole.endswith(struct.pack("<iI", -1, 0))
    path.write_bytes(whole[:-8])
    refused(rows, r"a\.arrow: is in Arrow's stream format, and does not end as such does")


@pytest.mark.parametrize("end", ["arrow", "parquet"])
def test_batches_without_rows_are_passed_over(rows, tmp_path, end):
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
def test_two_columns_of_one_name_are_refused(rows, tmp_path, end):
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


def test_tensors_of_a_shape_come_as_such(rows, tmp_path):
    tensors = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
    parquet.write_table(pa.table({"t": column}), tmp_path / "a.parquet", row_group_size=3)
    assert rows() == {"t": tensors.tolist()}


def test_parts_without_rows_are_passed_over_and_counted(rows, job, tmp_path):
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


def test_folders_named_after_a_value_are_gone_through_and_are_a_column(rows, tmp_path):
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
    assert rows(f"{tmp_path}/year=2020/own.parquet", ["year"]) == {"year": [7]}  # the file's own


def test_a_folder_of_folders_is_named(rows, tmp_path):
    (tmp_path / "first").mkdir()
    refused(rows, rf"{tmp_path} holds folders \(first\), and no files. Name what is in them: {tmp_path}/\*\*/")


def test_csv_has_the_kind_that_all_rows_have(rows, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 500_000 + "1.5,2\n")  # the fraction is in the third block of 1 MB
    got = rows()
    assert got["x"][-1] == 1.5 and got["y"][-1] == 2 and len(got["x"]) == 500_001


def test_csv_lines_may_be_longer_than_a_block(rows, tmp_path):
    names = [f"column{i}" for i in range(120_000)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(map(str, range(len(names)))) + "\n")
    assert rows(columns=["column119999"]) == {"column119999": [119999]}


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "NAN"])
def test_csv_nan_is_a_number_and_an_empty_cell_is_not(rows, tmp_path, text):
    (tmp_path / "a.csv").write_text(f"x,y\n1.5,2\n{text},3\ninf,4\n")
    got = rows()["x"]
    assert got[0] == 1.5 and np.isnan(got[1]) and got[2] == np.inf
    (tmp_path / "a.csv").write_text("x,y\n1.5,2\n,3\n")
    refused(rows, r"a\.csv: column 'x' has nulls \(row 1\)")


def test_csv_whole_numbers_are_exact_or_refused(rows, tmp_path):
    path, great = tmp_path / "a.csv", 2**64 - 1
    path.write_text(f"x\n{great}\n{2**53 + 1}\n7\n")
    assert rows() == {"x": [great, 2**53 + 1, 7]}
    path.write_text(f"x\n{great}\n-1\n")
    refused(rows, rf"a\.csv: column 'x' has the whole number {great} in row 0")
    path.write_text(f"x\n1.5\n{2**53 + 1}\n")
    refused(rows, rf"a\.csv: column 'x' has the whole number {2**53 + 1} in row 1")
    path.write_text("x\n1.5e300\n18014398509481984\n")
    assert rows() == {"x": [1.5e300, 2.0**54]}


def test_csv_whose_first_line_is_a_row_is_refused(rows, tmp_path):
    (tmp_path / "a.csv").write_text("0.5,1.5\n2.5,3.5\n")
    refused(rows, r"a\.csv: its first line has numbers, 0\.5, 1\.5, where the names")
    (tmp_path / "a.csv").write_text("0,1,2\n5,6,7\n")  # as pandas numbers columns
    assert rows() == {"0": [5], "1": [6], "2": [7]}


def test_columns_of_several_dtypes_are_not_stacked(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([2**53 + 1]), b=np.array([0.5]))
    refused(rows, r"columns 'a' \(int64\) and 'b' \(float64\) cannot be stacked into 'x'", columns={"x": ["a", "b"]})


@pytest.mark.parametrize("columns", [[], {}, [1], [["a"]], {"x": []}, {"x": [1]}, 3])
def test_columns_that_name_none_are_refused(rows, tmp_path, columns):
    np.savez(tmp_path / "a.npz", a=np.arange(2))
    refused(rows, "FileDataset: columns is ", columns=columns)


def test_one_name_is_one_column(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(2), b=np.arange(2), ab=np.arange(2, 4))
    assert rows(columns="ab") == {"ab": [2, 3]}


def masked(rows):
    return {"a": np.ma.masked_equal(rows["a"], 1)}


def test_masked_values_are_not_taken_for_numbers(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    refused(rows, r"a\.npz: column 'a' has masked values", transform=masked)


def test_what_changes_within_a_file_is_said_so(rows, tmp_path):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    with ipc.new_file(str(tmp_path / "a.arrow"), schema) as file:
        for lists in ([[1, 2]], [[3, 4, 5]]):
            file.write_batch(pa.record_batch([lists], schema=schema))
    refused(rows, r"a\.arrow: its columns change within the file: x int64\[3\], and x int64\[2\] before")


def write_arrow(path, **columns):
    table = pa.table(columns)
    with ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


def test_arrow_nulls_are_none_of_the_numbers_behind_them(rows, tmp_path):
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), (2,)), pa.array([[1, None], [2, 3]], pa.list_(pa.int32(), 2))
    )
    write_arrow(tmp_path / "a.arrow", t=tensors)
    refused(rows, r"a\.arrow: column 't' has nulls in lists \(row 0\)")
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([2**53 + 1, None], pa.int64()))
    write_arrow(tmp_path / "a.arrow", t=runs)
    refused(rows, r"a\.arrow: column 't' has nulls \(row 2\)")
    whole = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([2**53 + 1, 5], pa.int64()))
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
def test_arrow_columns_that_are_no_numbers_are_named_as_what_they_are(rows, tmp_path, column, says):
    write_arrow(tmp_path / "a.arrow", odd=column, a=list(range(len(column))))
    refused(rows, rf"a\.arrow: column 'odd' has {says}")
    assert rows(columns="a") == {"a": list(range(len(column)))}


def test_arrow_views_of_lists_are_lists(rows, tmp_path):
    write_arrow(tmp_path / "a.arrow", x=pa.array([[1, 2], [3, 4]], pa.list_view(pa.int64())))
    assert rows() == {"x": [[1, 2], [3, 4]]}


def test_what_stands_behind_the_first_array_or_stream_is_not_passed_over(rows, tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        for _ in range(2):
            np.save(file, np.arange(3))
    refused(rows, r"a\.npy: has more behind its array")
    (tmp_path / "a.npy").unlink()
    with open(tmp_path / "a.arrow", "wb") as file:
        for _ in range(2):
            with ipc.new_stream(file, (table := pa.table({"x": [1, 2]})).schema) as stream:
                stream.write_table(table)
    refused(rows, r"a\.arrow: has more behind the end of its Arrow stream")


@pytest.mark.parametrize(
    ("cells", "expected", "dtype"),
    [
        (["0xFFFFFFFFFFFFFFFF", "5"], [2**64 - 1, 5], "uint64"),
        (["0x10", "5"], [16, 5], "int64"),
        (["+12", "-3"], [12, -3], "int64"),
        (["9223372036854775808", "1"], [2**63, 1], "uint64"),
        (["+9007199254740993", "-3"], [2**53 + 1, -3], "int64"),
        (["+1.5", "2"], [1.5, 2.0], "float64"),
        (["1.5e18", "+2"], [1.5e18, 2.0], "float64"),
    ],
)
def test_csv_whole_numbers_have_one_dtype_whatever_their_signs_and_sizes(job, tmp_path, cells, expected, dtype):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    (batch,) = job(1).dataset(0, tmp_path, 9, shuffle=None)
    assert batch["x"].tolist() == expected and str(batch["x"].dtype) == f"torch.{dtype}"


def test_csv_cells_that_no_type_holds_are_named_with_their_row(rows, tmp_path):
    for cell in ("9223372036854775808", "1" * 100_000):
        (tmp_path / "a.csv").write_text(f"x\n-1\n{cell}\n")
        refused(rows, r"a\.csv: column 'x' has the whole number \d+ in row 1")
    (tmp_path / "a.csv").write_text("x\n1.5\n\n3.5\n")
    refused(rows, r"a\.csv: column 'x' has nulls \(row 1\)")


def test_hdf5_virtual_rows_are_looked_for_where_hdf5_does(rows, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    with h5py.File(tmp_path / "real" / "source.hdf", "w") as file:
        file["x"] = np.arange(1, 4)
    with h5py.File(tmp_path / "real" / "virtual.hdf", "w") as file:
        for name, source in (("x", "x"), ("missing", "none")):
            layout = h5py.VirtualLayout((3,), np.int64)
            layout[:] = h5py.VirtualSource("source.hdf", source, (3,))
            file.create_virtual_dataset(name, layout)
    (tmp_path / "link.h5").symlink_to(tmp_path / "real" / "virtual.hdf")
    assert rows(str(tmp_path / "link.h5"), "x") == {"x": [1, 2, 3]}
    refused(rows, r"link\.h5: 'missing' has its rows in 'none' of", str(tmp_path / "link.h5"))


def test_npz_members_that_are_no_arrays_are_named(rows, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file:
        file.writestr("readme.txt", "text")
    refused(rows, r"a\.npz: 'readme\.txt' is no array\. Name what is wanted")
    assert rows(columns="x") == {"x": [0, 1, 2]}


def in_place(rows):
    rows["a"] += 1
    return rows


def no_array(rows):
    return {"a": torch.ones(len(rows["a"]), requires_grad=True)}


def single(rows):
    return {"a": np.array(3)}


@pytest.mark.parametrize("end", ["parquet", "npz", "csv"])
def test_a_transform_may_work_in_place_whatever_the_format(rows, tmp_path, end):
    if end == "parquet":
        parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    elif end == "npz":
        np.savez(tmp_path / "a.npz", a=np.array([1, 2]))
    else:
        (tmp_path / "a.csv").write_text("a\n1\n2\n")
    assert rows(transform=in_place) == {"a": [2, 3]}


def test_what_a_transform_gives_that_is_no_array_is_named(rows, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    refused(rows, r"a\.npz: transform gave Tensor as column 'a', of which no array can be made", transform=no_array)
    refused(rows, r"a\.npz: transform gave a single value as column 'a'", transform=single)


def test_what_arrow_gives_a_reader_keeps_its_nulls(rows, tmp_path, monkeypatch):
    module = types.SimpleNamespace(read=lambda path: [{"x": pa.chunked_array([[2**53 + 1], [None]])}])
    monkeypatch.setitem(sys.modules, "arrow_reader", module)
    (tmp_path / "a.bin").write_text("any")
    refused(rows, r"a\.bin: column 'x' has nulls \(row 1\)", reader="arrow_reader:read")


class NoHugePages(mmap.mmap):
    """As of a kernel that was built without them."""

    def madvise(self, *_):
        raise OSError(22, "Invalid argument")


def test_rows_are_held_where_the_kernel_has_no_huge_pages(rows, tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    monkeypatch.setattr(holding.mmap, "mmap", NoHugePages)
    assert rows() == {"a": [0, 1, 2]}


def test_a_value_that_a_folder_lacks_is_a_null(rows, tmp_path):
    for year in ("2019", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"year={year}").mkdir()
        parquet.write_table(pa.table({"a": [1]}), tmp_path / f"year={year}" / "p.parquet")
    refused(rows, r"p\.parquet: (column 'year' has nulls \(row 0\)|its columns are not those)", columns="year")
