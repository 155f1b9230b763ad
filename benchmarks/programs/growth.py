"""Trainer: takes batches for some seconds, and writes their number and its CPU time. Argument: folder."""

import ctypes
import json
import sys
import time
from pathlib import Path

import mpidata
from benchmarks.contender import BATCH, Cell
from benchmarks.gate import Gate
from mpidata.native import structures
from mpidata.native.waiting import wait

WARM_BATCHES = 20

cell = Cell.read(Path(sys.argv[1]))
gate = Gate(cell.folder, cell.limit_s)
stream = mpidata.MPIStreamDataset(batch_size=BATCH)
trainer = stream._trainer
rank = trainer.communicator.Get_rank()


def received() -> int:
    statistics = structures.Statistics()
    trainer.library.mpidata_trainer_statistics(ctypes.byref(statistics))
    return statistics.received


batches = iter(stream)
for _ in range(WARM_BATCHES):
    next(batches)
wait(trainer.communicator.Ibarrier())
if rank == 0:
    gate.open()
start, cpu, before = time.monotonic(), time.process_time(), received()
for _ in batches:
    if time.monotonic() - start >= cell.seconds:
        break
seconds, cpu, samples = time.monotonic() - start, time.process_time() - cpu, received() - before
if rank == 0:
    gate.stop()
path = cell.folder / f"trainer-{rank}.json"
path.write_text(json.dumps({"samples": samples, "seconds": seconds, "cpu_s": cpu}))
for _ in batches:
    pass
if rank == 0:
    (cell.folder / "result.json").write_text(json.dumps({"samples": samples, "seconds": seconds}))
