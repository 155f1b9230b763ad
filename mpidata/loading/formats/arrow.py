"""Tables of pyarrow as arrays of numpy: Parquet, Arrow, Feather."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.formats.chunk import Chunk, Format, Kinds, Names, check_names, objects

__all__ = ["ARROW", "PARQUET", "array_of", "arrays_of", "kind_of", "pyarrow"]

_ROWS = 1 << 16
_MAGIC = b"ARROW1"
_FEATHER_1 = b"FEA1"
_CONTINUES, _NOTHING = b"\xff" * 4, bytes(4)  # of a message in a stream; old streams lack the first


def pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; raises StreamError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StreamError(
            "FileDataset needs pyarrow to read Parquet, Arrow, Feather and CSV. Install it: pip install mpidata[files]."
        ) from None


def arrays_of(path: str, batch: Any, names: Names) -> Chunk:
    """Return the columns of a batch of rows as arrays."""
    there = batch.schema.names
    return {name: array_of(batch.columns[there.index(name)]) for name in check_names(path, names, there)}


def kind_of(arrow_type: Any) -> str:
    """Name the kind of a type, the same for types that become the same arrays."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return kind_of(arrow_type.value_type)
    if isinstance(arrow_type, pyarrow().FixedShapeTensorType) or _is_list(arrow_type):
        return f"list of {kind_of(arrow_type.value_type)}"
    if isinstance(arrow_type, pyarrow().BaseExtensionType):
        return kind_of(arrow_type.storage_type)
    if types.is_boolean(arrow_type) or types.is_integer(arrow_type) or types.is_floating(arrow_type):
        return str(pyarrow().array([], arrow_type).to_numpy(zero_copy_only=False).dtype)  # to_pandas_dtype needs pandas
    return str(arrow_type)


def _is_list(arrow_type: Any) -> bool:
    types = pyarrow("pyarrow.types")
    is_any = (
        types.is_fixed_size_list,
        types.is_list,
        types.is_large_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(is_it(arrow_type) for is_it in is_any)


def array_of(column: Any) -> npt.NDArray[Any]:
    """Return a column as an array; of objects if it has nulls, texts, records or lists of different lengths.

    numpy would replace nulls by numbers, or round other values, so it converts only numbers and times.
    """
    types = pyarrow("pyarrow.types")
    if isinstance(column, pyarrow().ChunkedArray):
        return array_of(column.combine_chunks())
    if types.is_dictionary(column.type):
        return array_of(column.dictionary_decode())
    if types.is_run_end_encoded(column.type):
        return array_of(pyarrow("pyarrow.compute").run_end_decode(column))
    if types.is_date(column.type) or types.is_timestamp(column.type) or types.is_duration(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))  # nulls become NaT
    if column.null_count:
        return objects(column.to_pylist())
    if isinstance(column.type, pyarrow().FixedShapeTensorType) and not column.storage.flatten().null_count:
        return np.asarray(column.to_numpy_ndarray())
    if isinstance(column.type, pyarrow().BaseExtensionType):
        return array_of(column.storage)
    if _is_list(column.type):
        return _lists(column)
    if types.is_boolean(column.type) or types.is_integer(column.type) or types.is_floating(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return objects(column.to_pylist())


def _lists(column: Any) -> npt.NDArray[Any]:
    """Return lists of equal length as an array with one more dimension, others as an array of lists."""
    values, types = array_of(column.flatten()), pyarrow("pyarrow.types")
    if types.is_fixed_size_list(column.type):
        length, same = column.type.list_size, True
    else:
        is_view = types.is_list_view(column.type) or types.is_large_list_view(column.type)
        lengths = (column.sizes if is_view else column.value_lengths()).to_numpy()
        length, same = int(lengths[0]) if len(lengths) else 0, bool((lengths == lengths[:1]).all())
    if values.dtype != object and same:
        return values.reshape(len(column), length, *values.shape[1:])
    return objects(column.to_pylist())


def _described(path: str, rows: int, schema: Any, names: Names) -> tuple[int, Kinds]:
    wanted = check_names(path, names, schema.names)
    return rows, {name: kind_of(schema.field(schema.names.index(name)).type) for name in wanted}


def _parquet_columns(path: str) -> list[str]:
    return list(pyarrow("pyarrow.parquet").read_schema(path).names)


def _describe_parquet(path: str, names: Names) -> tuple[int, Kinds]:
    with pyarrow("pyarrow.parquet").ParquetFile(path) as file:
        return _described(path, int(file.metadata.num_rows), file.schema_arrow, names)


def _read_parquet(path: str, names: Names) -> Iterator[Chunk]:
    with pyarrow("pyarrow.parquet").ParquetFile(path) as file:
        wanted = check_names(path, names, file.schema_arrow.names)
        for batch in file.iter_batches(_ROWS, columns=wanted):
            yield arrays_of(path, batch, wanted)


def _batches(path: str, source: Any) -> tuple[Any, Iterator[Any]]:
    """Open an Arrow file, or one in the stream format; returns its schema and batches of rows."""
    ipc = pyarrow("pyarrow.ipc")
    begin, size = source.read(len(_MAGIC)), os.path.getsize(path)
    source.seek(0)
    if begin == _MAGIC:
        file = ipc.open_file(source)
        return file.schema, map(file.get_batch, range(file.num_record_batches))
    if begin.startswith(_FEATHER_1):
        raise StreamError(
            f"{path}: has version 1 of Feather, which is obsolete and not supported. Rewrite it as version 2."
        )
    end = _CONTINUES + _NOTHING if begin.startswith(_CONTINUES) else _NOTHING
    source.seek(max(0, size - len(end)))
    ended = source.read() == end
    source.seek(0)
    stream = ipc.open_stream(source)
    if not ended:  # a reader would not notice that data is missing
        raise StreamError(
            f"{path}: is in Arrow's stream format, but its end is missing: it was not written completely. Close the "
            "writer, and recreate the part."
        )
    return stream.schema, _to_the_end(path, source, stream, size)


def _to_the_end(path: str, source: Any, stream: Any, size: int) -> Iterator[Any]:
    yield from stream
    if source.tell() != size:
        raise StreamError(f"{path}: has more data after the end of its Arrow stream. Write one stream per file.")


def _arrow_columns(path: str) -> list[str]:
    with pyarrow().OSFile(path) as source:
        return list(_batches(path, source)[0].names)


def _describe_arrow(path: str, names: Names) -> tuple[int, Kinds]:
    with pyarrow().OSFile(path) as source:
        schema, batches = _batches(path, source)
        return _described(path, sum(batch.num_rows for batch in batches), schema, names)


def _read_arrow(path: str, names: Names) -> Iterator[Chunk]:
    with pyarrow().OSFile(path) as source:
        schema, batches = _batches(path, source)
        wanted = check_names(path, names, schema.names)
        for batch in batches:
            yield arrays_of(path, batch, wanted)


PARQUET = Format(_parquet_columns, _describe_parquet, _read_parquet)
ARROW = Format(_arrow_columns, _describe_arrow, _read_arrow)
"""Arrow's file and stream formats, and Feather 2."""
