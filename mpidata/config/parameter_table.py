"""Tables of parameters, for `sampler: file`: CSV or HDF5, one simulation per row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.config.base import Location, Problem, open_regular
from mpidata.config.parameters import Parameters, Points, check_name
from mpidata.config.sentences import suggestion

__all__ = ["Table", "TableError", "fit", "read_table"]

_MOST_CELLS = 10
_COMMENTS = ("#", "%", "//", "!")
_DECIMAL = re.compile(r"[-+]?[0-9]+([., '\u00a0\u2019\u202f][0-9]+)+([eE][-+]?[0-9]+)?")
_SPREADSHEET = re.compile(r"#(DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!)")
_KINDS = {
    b"PK\x03\x04": "a spreadsheet (or another zip file), not a table in text. Save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "a spreadsheet, not a table in text. Save it as CSV in UTF-8",
    b"\xff\xfe": "text in UTF-16. Save it as CSV in UTF-8",
    b"\xfe\xff": "text in UTF-16. Save it as CSV in UTF-8",
    b"\x1f\x8b": "compressed. Unpack it",
    b"PAR1": "a Parquet file. Save it as CSV, or as HDF5",
}
_MOST_NUMBERS = 100_000_000


class TableError(Exception):
    """The file cannot be read as a table; the text is the end of a sentence."""


class Table:
    """Columns of numbers by name.

    Attributes
    ----------
    columns : dict of str to ndarray
        Each float64, shape (rows,); NaN if a cell holds no number. `numbers` is for columns that may hold texts.
    cells : dict of (column, row) to str
        The texts of cells that hold no number.
    lines : list of int
        Line of each row in the file; empty for HDF5.
    """

    def __init__(
        self, columns: dict[str, npt.NDArray[np.float64]], cells: dict[tuple[str, int], str], lines: list[int]
    ) -> None:
        self.columns = columns
        self.cells = cells
        self.lines = lines

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    def cell(self, name: str, row: int) -> str:
        """Return the name and content of a cell; rows count from 0."""
        line = f" (line {self.lines[row]})" if self.lines else ""
        content = self.cells.get((name, row))
        shown = f"{self.columns[name][row]}" if content is None else repr(content) if content else "empty"
        return f"row {row + 1}{line}, column '{name}' is {shown}"

    def numbers(self, name: str, axis: Any) -> npt.NDArray[np.float64]:
        """Return the numbers of a column, or the indices of its texts if `axis` of `parameters.space` has texts."""
        values = self.columns[name]
        if isinstance(axis, Points) and axis.texts:
            places = {text: place for place, text in enumerate(axis.texts)}
            texts = [self.cells.get((name, row), "") for row in range(self.rows)]
            values = np.array([places.get(text, np.nan) for text in texts], np.float64)
        return values


def fit(parameters: Parameters, validation: int, folder: Path) -> tuple[list[Problem], dict[str, Any]]:
    """Check the table that `parameters.path` names against the rest of the section.

    Parameters
    ----------
    parameters : Parameters
        With `sampler: file`.
    validation : int
        Number of simulations for validation: the last rows.
    folder : Path
        The job file's folder.

    Returns
    -------
    problems : list of (location, sentence)
    filled : dict
        `count` and `space`, if the job file does not give them.
    """
    at: Location = ("parameters", "path")
    try:
        table = read_table(folder / str(parameters.path))
    except TableError as error:
        return [(at, f"'parameters.path': {parameters.path}: {error}")], {}
    space = parameters.space or dict.fromkeys(table.columns)
    problems = [(at, f"'parameters.path': {parameters.path}: {text}") for text in _fit_columns(table, space)]
    count = parameters.count if parameters.count is not None else max(table.rows - validation, 0)
    if count + validation > table.rows or count < 1:
        needed = f"{max(count, 1)} simulations and {validation} for validation need {max(count, 1) + validation}"
        fix = "Add rows, or lower 'parameters.count' or 'validation.count'"
        problems.append((at, f"'parameters.path': {parameters.path}: it has {table.rows} rows, but {needed}. {fix}."))
    return problems, {"count": count, "space": space}


def read_table(path: Path) -> Table:
    """Read a CSV or HDF5 file; raises TableError."""
    try:
        with open_regular(path) as file:
            first = file.read(8)
        hdf5 = first == b"\x89HDF\r\n\x1a\n"
        for magic, kind in _KINDS.items():
            if first.startswith(magic):
                raise TableError(f"it is {kind}.")
        return _read_hdf5(path) if hdf5 else _read_csv(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"cannot read {path}: {reason}. Correct the path.") from None


def _fit_columns(table: Table, space: dict[str, Any]) -> Iterator[str]:
    bad = 0
    for name, axis in space.items():
        if isinstance(axis, Points) and axis.value is not None:
            continue
        if name not in table.columns:
            fix = suggestion(name, table.columns) or f"The columns are {', '.join(table.columns)}."
            yield f"it has no column {name!r}. {fix}"
            continue
        wrong = check_name(name)
        if wrong:
            wrong = wrong if name else "it has no name."
            yield f"column {name!r}: {wrong} Rename it, or name the columns to use in 'parameters.space'."
            continue
        values = table.numbers(name, axis)
        finite = np.isfinite(values)
        texts = [table.cells.get((name, row), "") for row in range(table.rows)]
        if values is table.columns[name] and table.rows and all(text and not _like_number(text) for text in texts):
            known = ", ".join(sorted(set(texts))[:3])
            fix = "Leave it out by naming the columns to use in 'parameters.space', or add"
            yield f"column '{name}' holds texts: {known}. {fix} {name}: {{choices: [...]}} there."
            continue
        for row in np.flatnonzero(~finite):
            bad += 1
            if bad <= _MOST_CELLS:
                yield f"{table.cell(name, int(row))}. {_advice(texts[row], axis)}"
        for row in np.flatnonzero(finite & ~_allowed(axis, values)):
            bad += 1
            if bad <= _MOST_CELLS:
                given = axis.model_dump(exclude_none=True) if isinstance(axis, Points) else list(axis)
                outside = f"outside 'parameters.space.{name}', {given}"
                yield f"{table.cell(name, int(row))}, {outside}. Correct the number or the range."
    if bad > _MOST_CELLS:
        yield f"{bad - _MOST_CELLS} more cells are not finite or outside their range. Correct them too."


def _allowed(axis: Any, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    if isinstance(axis, Points) and axis.integers is None:
        return np.isin(values, list(axis.all))
    low, high = (axis.all[0], axis.all[-1]) if isinstance(axis, Points) else axis or (-np.inf, np.inf)
    within: npt.NDArray[np.bool_] = (values >= low) & (values <= high)
    return within & (np.floor(values) == values) if isinstance(axis, Points) else within


def _read_csv(path: Path) -> Table:
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True, skipinitialspace=True)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"not a CSV file: {error}. Save it as CSV in UTF-8, or as HDF5.") from None
    rows = [(line, row) for line, row in rows if any(row)]
    if not rows:
        raise TableError("it is empty. Give a first line with the parameters' names, then one row per simulation.")
    width = max(place for place, name in enumerate(rows[0][1], start=1) if name)
    names, body = rows[0][1][:width], [(line, _cut(row, width)) for line, row in rows[1:]]
    for line, row in [(rows[0][0], names), *(item for item in body if sum(map(bool, item[1])) != width)]:
        if row[0].startswith(_COMMENTS):
            raise TableError(
                f"line {line} is a comment: {','.join(row)!r:.80}. Remove it, or its sign before the names."
            )
        if any("\0" in cell for cell in row):
            raise TableError(f"line {line} has a NUL, as in UTF-16 text. Save it as CSV in UTF-8.")
    if names[0].startswith("sep="):
        raise TableError(f"its first line is {names[0]!r}, which only Excel reads. Remove it.")
    _check_separator(names, body)
    if any(_number(name) is not None for name in names):
        raise TableError(f"its first line is {','.join(names)!r}. Give a first line with the parameters' names.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"the column {twice[0]!r} occurs twice. Rename or remove one of them.")
    columns = {name: np.full(len(body), np.nan) for name in names}
    cells: dict[tuple[str, int], str] = {}
    for index, (line, row) in enumerate(body):
        if len(row) != len(names):
            fix = "If its numbers have decimal commas, write points. " if len(row) > len(names) else ""
            raise TableError(f"row {index + 1} (line {line}) has {len(row)} cells, not {len(names)}. {fix}Correct it.")
        for name, cell in zip(names, row, strict=True):
            value = _number(cell)
            if value is None:
                cells[name, index] = cell
            else:
                columns[name][index] = value
    return Table(columns, cells, [line for line, _ in body])


def _cut(row: list[str], width: int) -> list[str]:
    """Remove empty cells at the end, which spreadsheets add."""
    return row[:width] if not any(row[width:]) else row


def _check_separator(names: list[str], body: list[tuple[int, list[str]]]) -> None:
    """Refuse a table whose cells are not separated by commas, with a sentence on how to convert it."""
    head = ",".join(names)
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), (" ", "blanks"), ("|", "bars")):
        parts = [part for part in head.split(separator) if part]
        if len(parts) <= len(names) or (separator == " " and any(map(check_name, parts))):
            continue
        commas = separator != " " and any(
            "," in cell and _DECIMAL.fullmatch(cell) for _, row in body for cell in ",".join(row).split(separator)
        )
        said = f"its cells are separated by {word}" + (", and its numbers have decimal commas" if commas else "")
        how = f"sep={separator!r}" + (", decimal=','" if commas else "")
        fix = "Save it with commas between cells and points in numbers"
        raise TableError(f"{said}. {fix}, or convert it: pandas.read_csv(path, {how}).to_csv(path, index=False).")


def _like_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "+-."


def _advice(cell: str, axis: Any) -> str:
    if isinstance(axis, Points) and axis.texts:
        return f"Put one of its texts there: {', '.join(axis.texts)}."
    if _SPREADSHEET.fullmatch(cell):
        return "This is an error of the spreadsheet: correct its formula, and save the table again."
    if cell.startswith(_COMMENTS):
        return "Remove the line if it is a comment."
    if _DECIMAL.fullmatch(cell):
        return "Write it with a decimal point, and without separators of thousands."
    return "Put a finite number there."


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None  # float reads 1_0 as 10
    except ValueError:
        return None


def _read_hdf5(path: Path) -> Table:
    try:
        import h5py  # only for tables in this format
    except ImportError:
        raise TableError("it is HDF5, and h5py is not installed. Run `pip install h5py`, or use CSV.") from None
    try:
        with h5py.File(path, "r") as file:
            return Table(_columns_of(file), {}, [])
    except Exception as error:  # for damaged files h5py raises nearly anything
        if isinstance(error, TableError | MemoryError):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TableError(f"HDF5 cannot read it: {reason}. It may be damaged: write it again.") from None


def _columns_of(file: Any) -> dict[str, npt.NDArray[np.float64]]:
    if "parameters" in file and getattr(file["parameters"], "ndim", 0) == 2:
        return _named_columns(file["parameters"])
    sets = {name: item for name, item in file.items() if getattr(item, "ndim", 0) == 1 and item.dtype.kind in "iuf"}
    if not sets:
        raise TableError("it has neither 1-D datasets of numbers nor a 2-D dataset 'parameters'. Add one of them.")
    lengths = {name: len(item) for name, item in sets.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise TableError(f"its datasets differ in length ({listed}). Give them one row per simulation.")
    _check_size(sum(lengths.values()))
    return {name: np.asarray(item, dtype=np.float64) for name, item in sets.items()}


def _check_size(numbers: int) -> None:
    """Refuse a table that is too large, before it is read: a small file can declare any size."""
    if numbers > _MOST_NUMBERS:
        raise TableError(f"it has {numbers} numbers, more than {_MOST_NUMBERS}. Use fewer rows.")


def _named_columns(data: Any) -> dict[str, npt.NDArray[np.float64]]:
    if data.dtype.kind not in "iuf":
        raise TableError(f"its dataset 'parameters' has dtype {data.dtype}. Store numbers.")
    _check_size(data.shape[0] * data.shape[1])
    if not data.shape[1]:
        raise TableError("its dataset 'parameters' has no columns. Give it one for each parameter.")
    given = data.attrs.get("names")
    names = (
        []
        if given is None
        else [n.decode(errors="replace") if isinstance(n, bytes) else str(n) for n in np.ravel(given)]
    )
    if len(names) != data.shape[1] or len(set(names)) != len(names):
        raise TableError(
            f"its dataset 'parameters' has {data.shape[1]} columns and the names {names}. "
            "Give its attribute 'names' one name for each column."
        )
    table = np.asarray(data, dtype=np.float64)
    return {name: np.ascontiguousarray(table[:, index]) for index, name in enumerate(names)}
