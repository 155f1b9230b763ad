"""`parameters.csv` of the run folder: the parameters of every simulation, as they were drawn.

If the sampler learns, the file starts with the simulations for validation, and grows while the job runs. It then has
two more columns at its end, `rule` and `parent`, in which the sampler records how it drew a row. A text parameter is
a text in the file, and elsewhere a number: the index of the text in its list. If simulations were cancelled, a last
column `state`, added at the end of the run, marks them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.run.own_files import opener

__all__ = ["append_rows", "assignments", "mark_cancelled", "named", "read_parameters", "write_parameters"]

Texts = Mapping[str, Sequence[str]]
Table = npt.NDArray[np.float64]
_LEARNED = ("rule", "parent")
_STATE = "state"


def write_parameters(
    path: Path, names: Sequence[str], table: Table, first: int = 0, learned: bool = False, texts: Texts | None = None
) -> None:
    """Write the parameters as CSV: a header, then one line per simulation, its id first.

    Parameters
    ----------
    path : Path
        Of the file.
    names : sequence of str
        Of the parameters.
    table : ndarray
        float64, shape (rows, number of parameters). Numbers are written so that they are read back exactly.
    first : int
        Id of the simulation in the first row.
    learned : bool
        Whether these rows are for validation, and a sampler that learns draws the others later.
    texts : mapping of str to sequence of str, optional
        Of the parameters that are texts.
    """
    with open(path, "w", encoding="utf-8", newline="", opener=opener) as file:
        csv.writer(file, lineterminator="\n").writerow(["simulation", *names, *(_LEARNED if learned else ())])
        _write(file, first, _cells(names, table, texts or {}), [("validation", "") if learned else ()] * len(table))


def assignments(names: Sequence[str], row: Sequence[float], whole: Sequence[str], texts: Texts) -> list[str]:
    """Return the parameters of a simulation as `name=value`, those in `whole` without a decimal point."""
    values = named(names, row, texts)
    return [
        f"{name}={value:.0f}" if name in whole and float(value).is_integer() else f"{name}={value}"
        for name, value in values.items()
    ]


def named(names: Sequence[str], row: Sequence[float], texts: Texts) -> dict[str, float | str]:
    """Return the parameters of a simulation by name, texts as texts; the row may end with a weight."""
    return {name: texts[name][int(value)] if name in texts else value for name, value in zip(names, row, strict=False)}


def append_rows(
    path: Path,
    first: int,
    table: Table,
    more: Sequence[tuple[str, ...]],
    names: Sequence[str] = (),
    texts: Texts | None = None,
) -> None:
    """Append rows drawn by a sampler, with their rules and parents; returns when they are on disk.

    `names` and `texts` are as for `write_parameters`, needed if there are texts.

    Raises
    ------
    MpidataError
        The file cannot be written.
    """
    try:
        with open(path, "a", encoding="utf-8", newline="", opener=opener) as file:
            _write(file, first, _cells(names, table, texts or {}), more)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise MpidataError(
            f"{path}: cannot write it: {error.strerror}. Only simulations with parameters in this file can run. "
            "Free disk space and resume the job."
        ) from None


def mark_cancelled(path: Path, cancelled: Collection[int], columns: int) -> None:
    """Add a last column `state` to the file, which is `cancelled` for these simulations and otherwise empty.

    `columns` is the number of parameters. Raises OSError or ValueError if the file cannot be read or written.
    """
    head, *rows = list(csv.reader(path.read_bytes().decode().splitlines(), strict=True))
    known = len(head) - (head[-1] == _STATE and len(head) > 1 + columns)
    beside = path.with_name(f"{path.name}.new")
    with open(beside, "w", encoding="utf-8", newline="", opener=opener) as file:
        write = csv.writer(file, lineterminator="\n")
        write.writerow([*head[:known], _STATE])
        write.writerows([*row[:known], "cancelled" if int(row[0]) in cancelled else ""] for row in rows)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _cells(names: Sequence[str], table: Table, texts: Texts) -> list[list[str]]:
    cells = [list(map(repr, row)) for row in table.tolist()]
    for column in (column for column, name in enumerate(names) if name in texts):
        for row, number in zip(cells, table[:, column].tolist(), strict=True):
            row[column] = texts[names[column]][int(number)]
    return cells


def _write(file: TextIO, first: int, cells: list[list[str]], more: Sequence[tuple[str, ...]]) -> None:
    rows = enumerate(zip(cells, more, strict=True), start=first)
    csv.writer(file, lineterminator="\n").writerows([number, *row, *rest] for number, (row, rest) in rows)


def read_parameters(
    path: Path, names: Sequence[str], simulations: int, validation: int, texts: Texts | None = None
) -> tuple[npt.NDArray[np.float64], int | None]:
    """Read what `write_parameters` and `append_rows` have written.

    Parameters
    ----------
    path : Path
        The file. If it grows, an incomplete last line, left by a killed job, is removed from it.
    names : sequence of str
        Of the parameters.
    simulations, validation : int
        Numbers of simulations to train on, and for validation; the latter have the last ids.
    texts : mapping of str to sequence of str, optional
        Of the parameters that are texts.

    Returns
    -------
    table : ndarray
        float64, C order, shape (simulations + validation, number of parameters); NaN in rows that a sampler that
        learns has not drawn yet.
    drawn : int or None
        Number of `simulations` that it has drawn; None if the sampler does not learn, so that all are drawn.

    Raises
    ------
    MpidataError
        The file cannot be read, or does not list these simulations.
    """
    total, width = simulations + validation, 1 + len(names)
    try:
        lines = path.read_bytes().decode().splitlines(keepends=True)
        told = lines[0].rstrip().split(",") if lines else []
        more = told[width:-1] if told[width:] and told[-1] == _STATE else told[width:]
        learned = more == [*_LEARNED]
        if learned and not lines[-1].endswith("\n"):
            os.truncate(path, len("".join(lines[:-1]).encode()))
            lines.pop()
        head, *rows = list(csv.reader(lines, strict=True)) or [[]]
        for column, name in enumerate(names, start=1):
            known = (texts or {}).get(name)
            for row in rows if known else ():
                row[column] = str(list(known or ()).index(row[column]))
        of_run = [row if more and not learned else row[:width] for row in rows]
        read = np.array(of_run, np.float64).reshape(len(rows), len(head[:width]))
    except OSError as error:
        raise MpidataError(f"{path}: cannot read it: {error.strerror}. Start the job again.") from None
    except (ValueError, IndexError, csv.Error):
        raise MpidataError(f"{path}: it is not a table of numbers. Start the job again.") from None
    ids = np.arange(total)
    if learned:
        ids = np.concatenate([ids[simulations:], ids[:simulations]])[: max(validation, len(read))]
    if head[:width] != ["simulation", *names] or not np.array_equal(read[:, 0], ids):
        what = f"simulations 0, 1, 2, ... of {total} with {', '.join(names)}"
        raise MpidataError(f"{path}: it does not list {what}. Start the job again.")
    if not np.isfinite(read).all():
        raise MpidataError(f"{path}: not all its cells hold finite numbers. Start the job again.")
    table = np.full((total, len(names)), np.nan)
    table[ids] = read[:, 1:]
    return table, len(read) - validation if learned else None
