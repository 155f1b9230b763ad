"""Trainer: takes samples until all groups have come, then measures dispatches. Arguments: folder, number of groups."""

import json
import os
import sys
import time
from pathlib import Path

import mpidata
from benchmarks.contender import BATCH, Cell
from benchmarks.gate import Gate

cell = Cell.read(Path(sys.argv[1]))
groups = int(sys.argv[2])
gate = Gate(cell.folder, cell.limit_s)
VARIABLE = "PMIX_RANK" if "PMIX_RANK" in os.environ else "PMI_RANK"


def of_scheduler() -> list[Path]:
    """Return the processes of rank 0 of the job with this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environ = (process / "environ").read_bytes().split(b"\0")
            if f"{VARIABLE}=0".encode() in environ and os.readlink(process / "cwd") == os.getcwd():
                found.append(process)
        except OSError:  # belongs to another user, or has just ended
            continue
    return found


def cpu_s() -> float:
    """Return the CPU time of the scheduler in all its threads."""
    ticks = 0
    for process in scheduler:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime, stime: proc_pid_stat(5)
    return ticks / os.sysconf("SC_CLK_TCK")


batches = iter(mpidata.MPIStreamDataset(batch_size=BATCH))
while gate.made < groups:
    next(batches)
scheduler = of_scheduler()
if not scheduler:
    sys.exit("The scheduler's process was not found.")
start, used, count = time.monotonic(), cpu_s(), 0
gate.open()
for _ in batches:
    count += 1
    now = time.monotonic()
    if now - start >= cell.seconds:
        break
else:
    sys.exit("The simulations were used up before time. Give more of them.")
used = cpu_s() - used
gate.stop()
result = {"samples": count * BATCH, "seconds": now - start, "scheduler_cpu_s": used}
(cell.folder / "trainer.json").write_text(json.dumps(result))
(cell.folder / "result.json").write_text(json.dumps({"samples": count * BATCH, "seconds": now - start}))
