"""CSV files, whose columns are of the kinds that all of their rows have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpidata.errors import StreamError
from mpidata.files.formats.arrow import arrays_of, kind_of, pyarrow
from mpidata.files.formats.chunk import Chunk, Format, Kinds, Names, check_names

__all__ = ["CSV"]

_ROWS = 1 << 16
_BLOCK_BYTES, _MOST_BLOCK_BYTES = 1 << 20, (1 << 31) - 1
_WHOLE = re.compile(r"[+-]?\d+")
_EXACT = 2.0**53  # whole numbers below are in float64
_NOT_A_NUMBER = ("nan", "-nan")


def _table(path: str, types: dict[str, Any] | None = None) -> Any:
    """Read a file, in blocks that each of its lines fits in."""
    csv = pyarrow("pyarrow.csv")
    nulls = [text for text in csv.ConvertOptions().null_values if text.lower() not in _NOT_A_NUMBER]
    convert = csv.ConvertOptions(null_values=nulls, column_types=types or {})
    parse = csv.ParseOptions(newlines_in_values=True)
    size, block = os.path.getsize(path), _BLOCK_BYTES
    while True:
        try:
            return csv.read_csv(path, csv.ReadOptions(block_size=block), parse, convert)
        except pyarrow().ArrowInvalid:  # also of a line that is longer than a block
            if block > size or block == _MOST_BLOCK_BYTES:
                raise
            block = min(16 * block, _MOST_BLOCK_BYTES)


def _whole_table(path: str, names: Names) -> Any:
    table = _table(path)
    _check_heading(path, table.column_names)
    wanted = check_names(path, names, table.column_names)
    return _exact(path, table, wanted).select(wanted)


def _check_heading(path: str, names: list[str]) -> None:
    """Refuse a first line of numbers: it is a row. The numbers of the columns are names."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return
    if numbers != [numbers[0] + i for i in range(len(numbers))] or numbers[0] not in (0.0, 1.0):
        raise StreamError(
            f"{path}: its first line has numbers, {', '.join(names[:3])}, where the names of the columns are to stand. "
            "Write them there, or give a `reader`."
        )


def _exact(path: str, table: Any, names: list[str]) -> Any:
    """Have whole numbers that float64 does not hold as uint64; raises StreamError where that is not possible."""
    types = pyarrow()
    doubtful = [name for name in names if table.schema.field(name).type == types.float64()]
    doubtful = [name for name in doubtful if (np.abs(table[name].to_numpy()) >= _EXACT).any()]
    if not doubtful:
        return table
    texts = _table(path, dict.fromkeys(doubtful, types.string()))
    wide = {}
    for name in doubtful:
        column = [text.strip() for text in texts[name].to_pylist() if text is not None]
        cut = next((i for i, t in enumerate(column) if _WHOLE.fullmatch(t) and int(t) != int(float(t))), None)
        if cut is None:
            continue
        if not all(_WHOLE.fullmatch(text) and 0 <= int(text) < 1 << 64 for text in column):
            raise StreamError(
                f"{path}: column {name!r} has the whole number {column[cut]} in row {cut}, which neither float64 nor, "
                "with the column's other values, a type of whole numbers holds. Leave the column out of `columns`, or "
                "write numbers that fit."
            )
        wide[name] = types.uint64()
    return _table(path, wide) if wide else table


def _columns(path: str) -> list[str]:
    return list(_table(path).column_names)


def _describe(path: str, names: Names) -> tuple[int, Kinds]:
    table = _whole_table(path, names)
    return table.num_rows, {field.name: kind_of(field.type) for field in table.schema}


def _read(path: str, names: Names) -> Iterator[Chunk]:
    for batch in _whole_table(path, names).to_batches(_ROWS):
        yield arrays_of(path, batch, None)


CSV = Format(_columns, _describe, _read)
"""The first line has the names. `nan` is no null."""
