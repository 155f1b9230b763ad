"""How Python solvers use what is published, and their log ran-LIFE-RANK, one file per life of a group."""

import json
import os
import time
from pathlib import Path

import numpy as np
from published.values import check

import mpidata

OPTIONS = json.loads(Path(os.environ["LOOP_OPTIONS"]).read_text()) if "LOOP_OPTIONS" in os.environ else {}


def steps_of(simulation: int, steps: int) -> int:
    """Return the number of steps of a simulation that is not cancelled."""
    return steps + simulation % 3


class Log:
    """Lines: `begin SIMULATION`, `version STEP VERSION`, `end SIMULATION STEPS HOW`."""

    def __init__(self, rank: int, life: str) -> None:
        self._file = open(f"ran-{life}-{rank}", "a")  # noqa: SIM115

    def note(self, *words: object) -> None:
        print(*words, file=self._file, flush=True)


def log_of(group) -> Log:
    """Return the log of this rank; `group` is None for a single rank."""
    life = f"{os.getpid()}.{time.monotonic_ns()}"
    if group is not None:
        life = group.bcast(life)
    return Log(0 if group is None else group.Get_rank(), life)


def refresh(log: Log, simulation: int, step: int) -> None:
    """Refresh the published arrays, at steps that are the same on all ranks."""
    if (simulation * 7919 + step * 104729 + OPTIONS["seed"]) % 100 >= OPTIONS["refreshes"]:
        return
    version = mpidata.solver.refresh()
    log.note("version", step, version)
    check(mpidata.solver.published(), version, OPTIONS["elements"])


def ragged(simulation: int, step: int, rank: int) -> np.ndarray:
    """Return a rank's 0 to 3 rows of `p`; the second column holds their row numbers in the whole."""
    first, count = sum((simulation + step + one) % 4 for one in range(rank)), (simulation + step + rank) % 4
    rows = np.arange(first, first + count, dtype=np.float32)
    return np.stack([np.full(count, 64 * simulation + step, np.float32), rows], axis=1)


def part(alpha: float, step: int, rank: int, size: int) -> tuple[np.ndarray, tuple[int, int]]:
    """Return a rank's rows of `u`, and their start."""
    rows = np.array_split(np.arange(12), size)[rank]
    return np.full((len(rows), 6), alpha + step, np.float32), (int(rows[0]), 0)
