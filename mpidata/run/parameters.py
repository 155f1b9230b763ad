"""`parameters.csv` of the run folder: the parameters of every simulation, as they were drawn."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.run.own_files import opener

__all__ = ["read_parameters", "write_parameters"]


def write_parameters(path: Path, names: Sequence[str], table: npt.NDArray[np.float64]) -> None:
    """Write the parameters as CSV: a header, then one line per simulation, its id first.

    Parameters
    ----------
    path : Path
        Of the file.
    names : sequence of str
        Of the parameters.
    table : ndarray
        float64, shape (simulations + validation, number of parameters). Numbers are written so that they are read back
        to the last bit.
    """
    with open(path, "w", encoding="utf-8", newline="", opener=opener) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["simulation", *names])
        writer.writerows([simulation, *map(repr, row)] for simulation, row in enumerate(table.tolist()))


def read_parameters(path: Path) -> npt.NDArray[np.float64]:
    """Read what `write_parameters` has written.

    Returns
    -------
    ndarray
        float64, shape (simulations + validation, number of parameters).

    Raises
    ------
    MpidataError
        The file cannot be read, or has been changed so that it no longer lists simulations 0, 1, ...
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
        head, rows = (lines or [[]])[0], lines[1:]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(head))
    except OSError as error:
        raise MpidataError(f"{path}: cannot read it: {error.strerror}. Start the job again.") from None
    except (ValueError, csv.Error):
        raise MpidataError(f"{path}: it is no table of numbers. Start the job again.") from None
    if head[:1] != ["simulation"] or not np.array_equal(table[:, 0], np.arange(len(table))):
        raise MpidataError(f"{path}: it does not list simulations 0, 1, 2, ... Start the job again.")
    if not np.isfinite(table).all():
        raise MpidataError(f"{path}: not all of its cells hold finite numbers. Start the job again.")
    return np.ascontiguousarray(table[:, 1:])
