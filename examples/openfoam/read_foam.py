"""Reads the output of laplacianFoam: a text file per time and rank."""

import re
from pathlib import Path

import numpy as np

COLUMNS = 20


def fields(path, simulation):
    """Yield the field of one time; `path` is the first rank's part, processor0/<time>/T."""
    time, case = path.parent.name, path.parents[2]
    whole = np.empty(COLUMNS * COLUMNS, np.float32)
    for rank in sorted(case.glob("processor*")):
        cells = read_list(rank / "constant/polyMesh/cellProcAddressing").astype(int)
        whole[cells] = read_list(rank / time / "T", "internalField")
    yield float(time), {"temperature": whole.reshape(COLUMNS, COLUMNS)}  # [row in y, column in x]


def read_list(file: Path, key: str = "") -> np.ndarray:
    """Read the list of numbers behind a key: `200 ( 1.5 2.5 ... )`."""
    text = file.read_text().partition("// * *")[2]
    found = re.search(r"(\d+)\s*\(([^()]*)\)", text[text.index(key) :])
    if found is None or len(numbers := np.array(found[2].split(), float)) != int(found[1]):
        raise ValueError(f"{file} holds no whole list of numbers")
    return numbers
