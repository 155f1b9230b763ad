"""Columns equal what pyarrow, h5py and NumPy read, in every bit and in dtype, or an error is raised."""

import itertools
import random

import h5py
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from mpidata.errors import StreamError

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
SHAPES = [(), (3,)]


def column_of(rng, dtype, shape, rows):
    """Return random bits that are valid in the dtype, including NaN."""
    if dtype == "?":
        return rng.integers(0, 2, (rows, *shape)).astype(bool)
    wide = np.dtype(dtype).itemsize
    return rng.integers(0, 256, (rows, *shape, wide), np.uint8).view(dtype).reshape(rows, *shape)


def table_of(columns):
    return pa.table(
        {name: pa.array(column.tolist() if column.ndim > 1 else column) for name, column in columns.items()}
    )


def typed_table_of(columns):
    arrays = {}
    for name, column in columns.items():
        flat = pa.array(column.reshape(-1))
        arrays[name] = flat if column.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
    return pa.table(arrays)


def write_stream(path, columns):
    with ipc.new_stream(str(path), (table := typed_table_of(columns)).schema) as stream:
        stream.write_table(table, max_chunksize=5)


def write_h5(path, columns):
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file.create_dataset(f"within/{name}", data=column.astype(column.dtype.newbyteorder(">")), chunks=True)


WRITERS = {
    "parquet": lambda path, columns: parquet.write_table(typed_table_of(columns), path, row_group_size=4),
    "feather": lambda path, columns: feather.write_feather(typed_table_of(columns), str(path)),
    "arrow": write_stream,
    "h5": write_h5,
    "npz": lambda path, columns: np.savez(path, **columns),
}


@pytest.mark.parametrize("loaders", [1, 2, 3])
@pytest.mark.parametrize("end", WRITERS)
def test_all_dtypes_are_read_bit_for_bit_in_any_column_order(job, tmp_path, end, loaders):
    rng, order = np.random.default_rng(loaders), random.Random(loaders)
    kinds = {
        f"{dtype.strip('?') or 'b'}{len(shape)}": (dtype, shape) for dtype, shape in itertools.product(DTYPES, SHAPES)
    }
    expected = {name: [] for name in kinds}
    for part in range(4):
        rows, names = order.randint(1, 13), list(kinds)
        order.shuffle(names)  # columns have names, so their order does not matter
        columns = {name: column_of(rng, *kinds[name], rows) for name in names}
        WRITERS[end](tmp_path / f"{part}.{end}", columns)
        for name in names:
            expected[name].append(columns[name])
    batches = list(job(loaders).dataset(0, tmp_path, 5, shuffle=None))
    assert len({tuple(batch) for batch in batches}) == 1
    for name in kinds:
        whole, came = np.concatenate(expected[name]), [b[name if end != "h5" else f"within/{name}"] for b in batches]
        got = np.concatenate([tensor.numpy() for tensor in came])
        assert got.dtype == whole.dtype and got.tobytes() == whole.tobytes(), name


@pytest.mark.parametrize("loaders", [1, 3])
@pytest.mark.parametrize("end", ["parquet", "feather", "arrow"])
@pytest.mark.parametrize(
    ("values", "arrow_type", "says"),
    [
        ([1, None, 3], pa.int64(), r"nulls \(row 1\)"),
        ([1.5, 2.5, None], pa.float32(), r"nulls \(row 2\)"),
        ([True, None, False], pa.bool_(), r"nulls \(row 1\)"),
        ([[1, 2], None, [3, 4]], pa.list_(pa.int64()), r"nulls \(row 1\)"),
        ([[1, 2], [3, 4], [5, None]], pa.list_(pa.int64()), r"nulls in lists \(row 2\)"),
        ([1, None, 3], pa.timestamp("ns"), r"timestamps with nulls \(row 1\)"),
        ([1, 2, 3], pa.timestamp("us"), "timestamps,"),
        ([1, 2, None], pa.duration("ms"), r"durations with nulls \(row 2\)"),
        (["a", "b", "c"], pa.string(), "texts"),
        ([[1], [1, 2], []], pa.list_(pa.int32()), "lists of different lengths"),
        ([None, None, None], pa.null(), r"nulls \(row 0\)"),
    ],
)
def test_values_that_are_not_numbers_are_reported_with_part_and_column(
    job, tmp_path, end, loaders, values, arrow_type, says
):
    table = pa.table({"a": [1, 2, 3], "odd": pa.array(values, arrow_type)})
    if end == "parquet":
        parquet.write_table(table, tmp_path / "0.parquet")
    elif end == "feather":
        feather.write_feather(table, str(tmp_path / "0.feather"))
    else:
        with ipc.new_stream(str(tmp_path / "0.arrow"), table.schema) as stream:
            stream.write_table(table)
    with pytest.raises(StreamError, match=rf"0\.{end}: column 'odd' has {says}"):
        list(job(loaders).dataset(0, tmp_path, 2, shuffle=None))
    (batch,) = job(loaders).dataset(0, tmp_path, 3, "a", shuffle=None)
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {"a": [1, 2, 3]}


@pytest.mark.parametrize("dtype", ["g", "G", "V3", "S2", "U2", "M8[s]", "m8[ms]", [("x", "i4"), ("y", "f8")]])
def test_dtypes_unsupported_by_torch_are_reported(job, tmp_path, dtype):
    np.savez(tmp_path / "0.npz", a=np.arange(2), odd=np.zeros(2, dtype))
    with pytest.raises(StreamError, match=r"0\.npz: column 'odd' has .*, which cannot become a tensor"):
        list(job(1).dataset(0, tmp_path, 2))


@pytest.mark.parametrize("loaders", [1, 2, 3])
@pytest.mark.parametrize(
    "second",
    [{"x": np.arange(2.0)}, {"y": np.arange(2)}, {"x": np.arange(2), "y": np.arange(2)}, {"x": np.zeros((2, 2), int)}],
)
@pytest.mark.parametrize("shuffle", [None, "parts", "rows"])
def test_parts_with_differing_columns_are_reported_before_the_first_batch(job, tmp_path, second, shuffle, loaders):
    np.savez(tmp_path / "0.npz", x=np.arange(2))
    np.savez(tmp_path / "1.npz", **second)
    with pytest.raises(StreamError, match=r"1\.npz: its columns are not those of .*0\.npz: .* here, .* there"):
        job(loaders).dataset(0, tmp_path, 1, shuffle=shuffle)
    if "x" in second and second["x"].ndim == 1:
        data = job(loaders).dataset(0, tmp_path, 1, shuffle=None, transform=as_floats)
        assert [b["x"].item() for b in data] == [0.0, 1.0, 0.0, 1.0]


def as_floats(rows):
    return {"x": rows["x"].astype(np.float64)}


@pytest.mark.parametrize("loaders", [1, 2])
def test_transform_that_returns_differing_columns_is_reported(job, tmp_path, loaders):
    for part in range(2):
        np.savez(tmp_path / f"{part}.npz", x=np.full(4, part))
    with pytest.raises(StreamError, match=r"\d\.npz: its columns are not those of .*\d\.npz"):
        list(job(loaders).dataset(0, tmp_path, 2, shuffle=None, transform=by_part))


def by_part(rows):
    return {"x": rows["x"].astype(np.float32 if rows["x"][0] else np.float64)}
