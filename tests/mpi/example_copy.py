"""Copies of the examples as they are before anyone has built or run them."""

import shutil
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = ["heat2d", "heat2d_f", "fountain", "burgers"]
MADE = [*PROGRAMS, "runs", "__pycache__", "*.o", "*.so", "*.mod", "mpich", "parts", "record"]


def copy_example(name: str, folder: Path) -> Path:
    """Copy an example into a folder, without what its Makefile, scripts and jobs have made; returns the folder."""
    return Path(shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*MADE)))
