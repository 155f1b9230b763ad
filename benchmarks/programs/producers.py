"""Trainer: takes batches from many producers. Arguments: folder, producers."""

import sys
from pathlib import Path

import mpidata
from benchmarks.contender import Cell
from benchmarks.many_to_one.board import BATCH, Board
from benchmarks.many_to_one.loop import consume

cell = Cell.read(Path(sys.argv[1]))
stream = mpidata.MPIStreamDataset(batch_size=BATCH)
consume((batch["u"] for batch in stream), cell, Board(cell.folder, cell.limit_s), int(sys.argv[2]))
for _ in stream:
    pass  # drain the stream so that the job ends normally
