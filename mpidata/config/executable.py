"""Which executable a program of the job file names."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["find_program"]


def find_program(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Arguments to start a program with: the executable made absolute where it lies in the job file's folder.

    `python` and `python3` mean the Python that runs mpidata. A name that is no file of the folder is left to PATH.
    """
    first, *rest = program
    if first in ("python", "python3"):
        return (sys.executable, *rest)
    here = folder / first
    if os.path.isfile(here) and ("/" in first or os.access(here, os.X_OK)):
        return (os.path.abspath(here), *rest)
    return tuple(program)
