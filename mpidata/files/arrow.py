"""Tables of pyarrow, and files that it reads, as arrays of numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError

__all__ = ["count_csv", "count_feather", "count_parquet", "read_csv", "read_feather", "read_parquet"]

Chunk = dict[str, npt.NDArray[Any]]
Names = Sequence[str] | None

_ROWS = 1 << 16


def count_parquet(path: str) -> int:
    """Count the rows of a Parquet file, by its end."""
    return int(_arrow("pyarrow.parquet").read_metadata(path).num_rows)


def read_parquet(path: str, names: Names) -> Iterator[Chunk]:
    """Read a Parquet file."""
    with _arrow("pyarrow.parquet").ParquetFile(path) as file:
        _check_names(path, names, file.schema_arrow.names)
        for batch in file.iter_batches(_ROWS, columns=names):
            yield _arrays(batch)


def count_feather(path: str) -> int:
    """Count the rows of an Arrow file, or one of Feather 2."""
    with _arrow("pyarrow").OSFile(path) as source:
        file = _arrow("pyarrow.ipc").open_file(source)
        return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))


def read_feather(path: str, names: Names) -> Iterator[Chunk]:
    """Read an Arrow file, or one of Feather 2."""
    with _arrow("pyarrow").OSFile(path) as source:
        file = _arrow("pyarrow.ipc").open_file(source)
        _check_names(path, names, file.schema.names)
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            yield _arrays(batch if names is None else batch.select(names))


def count_csv(path: str) -> int:
    """Count the rows of a CSV file by reading it."""
    with _arrow("pyarrow.csv").open_csv(path) as file:
        return sum(batch.num_rows for batch in file)


def read_csv(path: str, names: Names) -> Iterator[Chunk]:
    """Read a CSV file, whose first line has the names."""
    with _arrow("pyarrow.csv").open_csv(path) as file:
        _check_names(path, names, file.schema.names)
        for batch in file:
            yield _arrays(batch if names is None else batch.select(names))


def _arrow(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise StreamError(
            "FileDataset needs pyarrow to read Parquet, Arrow, Feather and CSV. Install it: pip install mpidata[files]."
        ) from None


def _check_names(path: str, names: Names, there: Sequence[str]) -> None:
    for name in names or ():
        if name not in there:
            raise StreamError(f"{path}: there is no column {name!r}. It has {', '.join(map(repr, there))}.")


def _arrays(batch: Any) -> Chunk:
    return {name: _array(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _array(column: Any) -> npt.NDArray[Any]:
    """Make an array of a column; of objects where it has nulls, texts or lists of several lengths."""
    types = _arrow("pyarrow.types")
    if column.null_count:
        return np.array(column.to_pylist(), object)
    if types.is_fixed_size_list(column.type) or types.is_list(column.type) or types.is_large_list(column.type):
        values = _array(column.flatten())
        lengths = np.full(len(column), len(values) // max(1, len(column)))
        if not types.is_fixed_size_list(column.type):
            lengths = column.value_lengths().to_numpy()
        if values.dtype != object and (lengths == lengths[:1]).all():
            return values.reshape(len(column), -1, *values.shape[1:])
        several = np.empty(len(column), object)
        several[:] = column.to_pylist()
        return several
    array: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return array
