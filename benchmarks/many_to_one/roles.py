"""A process of a way in Python: `produce FOLDER NUMBER PRODUCERS` or `consume FOLDER PRODUCERS`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.contender import Cell
from benchmarks.many_to_one.board import Board

__all__ = ["run_role"]


def run_role(put: Callable[[Cell, Board, int, int], None], take: Callable[[Cell, Board, int], None]) -> None:
    """Run one process with a time limit."""
    role, folder, *numbers = sys.argv[1:]
    cell = Cell.read(Path(folder))
    signal.alarm(int(cell.limit_s))
    board = Board(cell.folder, cell.limit_s)
    (put if role == "produce" else take)(cell, board, *(int(number) for number in numbers))
