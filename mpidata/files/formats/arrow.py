"""Tables of pyarrow as arrays of numpy: Parquet, Arrow, Feather."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.files.formats.chunk import Chunk, Format, Kinds, Names, check_names, objects

__all__ = ["ARROW", "PARQUET", "arrays_of", "kind_of", "pyarrow"]

_ROWS = 1 << 16
_MAGIC = b"ARROW1"
_CONTINUES, _NOTHING = b"\xff" * 4, bytes(4)  # of a message in a stream, the first but in those of old


def pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; raises StreamError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise StreamError(
            "FileDataset needs pyarrow to read Parquet, Arrow, Feather and CSV. Install it: pip install mpidata[files]."
        ) from None


def arrays_of(path: str, batch: Any, names: Names) -> Chunk:
    """Make arrays of a batch of rows."""
    there = batch.schema.names
    return {name: _array(batch.columns[there.index(name)]) for name in check_names(path, names, there)}


def kind_of(arrow_type: Any) -> str:
    """Name the kind of a type, the same for types that give the same arrays."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if isinstance(arrow_type, pyarrow().FixedShapeTensorType) or _is_list(arrow_type):
        return f"list of {kind_of(arrow_type.value_type)}"
    if isinstance(arrow_type, pyarrow().BaseExtensionType):
        return kind_of(arrow_type.storage_type)
    if types.is_boolean(arrow_type) or types.is_integer(arrow_type) or types.is_floating(arrow_type):
        return str(np.dtype(arrow_type.to_pandas_dtype()))
    return str(arrow_type)


def _is_list(arrow_type: Any) -> bool:
    types = pyarrow("pyarrow.types")
    return bool(types.is_fixed_size_list(arrow_type) or types.is_list(arrow_type) or types.is_large_list(arrow_type))


def _array(column: Any) -> npt.NDArray[Any]:
    """Make an array of a column; of objects where it has nulls, texts or lists of several lengths."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(column.type):
        return _array(column.dictionary_decode())
    if column.null_count and not types.is_temporal(column.type):  # which has a value for it, NaT
        return objects(column.to_pylist())
    if isinstance(column.type, pyarrow().FixedShapeTensorType):
        return np.asarray(column.to_numpy_ndarray())
    if isinstance(column.type, pyarrow().BaseExtensionType):
        return _array(column.storage)
    return _lists(column) if _is_list(column.type) else np.asarray(column.to_numpy(zero_copy_only=False))


def _lists(column: Any) -> npt.NDArray[Any]:
    """Make an array of one more dimension of lists of one length; else one of lists."""
    values = _array(column.flatten())
    if pyarrow("pyarrow.types").is_fixed_size_list(column.type):
        length, same = column.type.list_size, True
    else:
        lengths = column.value_lengths().to_numpy()
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
    """Open an Arrow file, or one in the stream format; gives its schema and batches of rows."""
    ipc = pyarrow("pyarrow.ipc")
    begin = source.read(len(_MAGIC))
    source.seek(0)
    if begin == _MAGIC:
        file = ipc.open_file(source)
        return file.schema, map(file.get_batch, range(file.num_record_batches))
    end = _CONTINUES + _NOTHING if begin.startswith(_CONTINUES) else _NOTHING
    source.seek(max(0, os.path.getsize(path) - len(end)))
    ended = source.read() == end
    source.seek(0)
    stream = ipc.open_stream(source)
    if not ended:  # a reader would take what is missing for the end
        raise StreamError(
            f"{path}: is in Arrow's stream format, and does not end as such does: it was not written to its end. Close "
            "what writes it, and make the part anew."
        )
    return stream.schema, iter(stream)


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
