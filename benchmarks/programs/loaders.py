"""A loop over rows of files without training, on each trainer: loaders.py KIND FOLDER PARTS BATCH EPOCHS.

The first trainer writes loaders.json into the folder: from the second epoch on, rows/s of all trainers and CPU time per
row on all ranks; at the end, the memory of the loaders.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil

import mpidata


def main(kind: str, folder: str, parts: str, batch: str, epochs: str) -> None:
    """Read every number of every batch."""
    names = sorted(str(path) for path in Path(parts).glob("*.npy"))
    data = mpidata.FileDataset(names, int(batch))
    rows, started, cpu = 0, 0.0, 0.0
    for epoch in range(int(epochs)):
        for number, one in enumerate(data):
            if epoch == 1 and number == 0:
                started, cpu = time.perf_counter(), _cpu_s()
            values = one["data"].numpy()
            values.sum()
            rows += len(values) if epoch else 0
    seconds = time.perf_counter() - started
    if os.environ["RANK"] == "0":
        all_rows = rows * int(os.environ["WORLD_SIZE"])
        told = {
            "rows_per_s": all_rows / seconds,
            "cpu_ns": 1e9 * (_cpu_s() - cpu) / all_rows,
            "loaders_mb": sum(one.memory_full_info().pss for one in _ranks("mpidata.loader")) / 1e6,
        }
        Path(folder, "loaders.json").write_text(json.dumps(told))


def _ranks(word: str) -> list[psutil.Process]:
    """Return the job's processes whose command contains a word."""
    launcher = next(one for one in psutil.Process().parents() if one.name() in ("mpirun", "prterun"))
    return [one for one in launcher.children(recursive=True) if word in " ".join(one.cmdline())]


def _cpu_s() -> float:
    return sum(sum(one.cpu_times()[:2]) for one in _ranks(""))


if __name__ == "__main__":
    main(*sys.argv[1:])
