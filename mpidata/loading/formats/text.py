"""CSV files; all rows determine the kind of a column."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpidata.errors import StreamError
from mpidata.loading.formats.arrow import arrays_of, kind_of, pyarrow
from mpidata.loading.formats.chunk import Chunk, Format, Kinds, Names, check_names

__all__ = ["CSV"]

_ROWS = 1 << 16
_BLOCK_BYTES, _MOST_BLOCK_BYTES = 1 << 20, (1 << 31) - 1
_WHOLE = re.compile(r"[+-]?(\d{1,30}|0[xX][0-9a-fA-F]{1,25})")
_TOO_WIDE = re.compile(r"[+-]?\d{31,}")
_EXACT = 2.0**53  # float64 represents whole numbers below this
# pyarrow takes these for a fraction, or for a negative number: +7, 0xFFFFFFFFFFFFFFFF.
_SIGNED = re.compile(rb"(^|[,\s\"])(\+\d|[+-]?0[xX][0-9a-fA-F])", re.MULTILINE)
_NOT_A_NUMBER = ("nan", "-nan")


def _table(path: str, types: dict[str, Any] | None = None) -> Any:
    """Read a file, in blocks that are longer than each line."""
    csv = pyarrow("pyarrow.csv")
    nulls = [text for text in csv.ConvertOptions().null_values if text.lower() not in _NOT_A_NUMBER]
    convert = csv.ConvertOptions(null_values=nulls, column_types=types or {})
    parse = csv.ParseOptions(newlines_in_values=True)
    size, block = os.path.getsize(path), _BLOCK_BYTES
    while True:
        try:
            table = csv.read_csv(path, csv.ReadOptions(block_size=block), parse, convert)
            if table.num_columns > 1 or not parse.ignore_empty_lines:
                return table
            parse.ignore_empty_lines = False  # with one column, an empty line is an empty cell
        except pyarrow().ArrowInvalid:  # for example a line is longer than a block
            if block > size or block == _MOST_BLOCK_BYTES:
                raise
            block = min(16 * block, _MOST_BLOCK_BYTES)


def _whole_table(path: str, names: Names) -> Any:
    table = _table(path)
    _check_heading(path, table.column_names)
    wanted = check_names(path, names, table.column_names)
    return _exact(path, table, wanted).select(wanted)


def _check_heading(path: str, names: list[str]) -> None:
    """Refuse a first line of numbers, which is a row, unless they are the numbers of the columns."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return
    if numbers != list(range(len(numbers))):
        raise StreamError(
            f"{path}: its first line has numbers, {', '.join(names[:3])}, instead of the names of the columns. Write "
            "the names there, or give a `reader`."
        )


def _exact(path: str, table: Any, names: list[str]) -> Any:
    """Keep whole numbers that float64 cannot represent; raises StreamError if that is impossible."""
    types = pyarrow()
    signed = _has_signed(path)
    doubtful = [
        name
        for name in names
        if (table.schema.field(name).type == types.float64() and (signed or _is_great(table[name])))
        or (table.schema.field(name).type == types.int64() and signed)
    ]
    if not doubtful:
        return table
    texts = _table(path, dict.fromkeys(doubtful, types.string()))
    for name in doubtful:
        if (whole := _whole_numbers(path, name, texts[name].to_pylist())) is not None:
            table = table.set_column(table.column_names.index(name), name, whole)
    return table


def _is_great(column: Any) -> bool:
    return bool((np.abs(column.to_numpy()) >= _EXACT).any())


def _has_signed(path: str) -> bool:
    if not os.path.getsize(path):
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return _SIGNED.search(text) is not None


def _whole_numbers(path: str, name: str, texts: list[str | None]) -> Any:
    """Convert texts that are whole numbers to int64 or uint64; None if there are fractions among them."""
    column = [text if text is None else text.strip() for text in texts]
    found = [_whole(text) for text in column if text is not None]
    numbers = [number for number in found if number is not None]
    if len(numbers) == len(found):
        least, most = min(numbers, default=0), max(numbers, default=0)
        for kind, low, high in (("int64", -(1 << 63), 1 << 63), ("uint64", 0, 1 << 64)):
            if low <= least and most < high:
                values = [text if text is None else _whole(text) for text in column]
                return pyarrow().array(values, getattr(pyarrow(), kind)())
    for row, text in enumerate(column):
        number = None if text is None else _whole(text)
        lost = number is not None and (
            abs(number) >= 1 << 63 if len(numbers) == len(found) else number != int(float(number))
        )
        if lost or _TOO_WIDE.fullmatch(text or ""):
            raise StreamError(
                f"{path}: column {name!r} has the whole number {text:.40} in row {row}, but no type holds that number "
                "and the column's other values. Omit the column from `columns`, or write numbers that fit."
            )
    return None


def _whole(text: str) -> int | None:
    if _WHOLE.fullmatch(text) is None:
        return None
    return int(text, 16) if "x" in text.lower() else int(text)


def _columns(path: str) -> list[str]:
    return list(_table(path).column_names)


def _describe(path: str, names: Names) -> tuple[int, Kinds]:
    table = _whole_table(path, names)
    return table.num_rows, {field.name: kind_of(field.type) for field in table.schema}


def _read(path: str, names: Names) -> Iterator[Chunk]:
    for batch in _whole_table(path, names).to_batches(_ROWS):
        yield arrays_of(path, batch, None)


CSV = Format(_columns, _describe, _read)
"""The first line has the names. `nan` is not a null."""
