"""mpidata-rank, started by hand with a launcher's variables; no MPI."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from launch_job import clean_environment


def start_rank(
    shim: Path, run: Path, rank: int | None, size: int = 7, arguments: Sequence[str] = (), **more: str
) -> "subprocess.Popen[str]":
    variables = dict(more)
    if rank is not None:
        variables |= {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size)}
    # Launchers give each rank a process group of its own.
    return subprocess.Popen(
        [str(shim), str(run), *arguments],
        env=clean_environment(**variables),
        stderr=subprocess.PIPE,
        text=True,
        process_group=0 if sys.version_info >= (3, 11) else None,
        start_new_session=sys.version_info < (3, 11),
    )


def run_rank(shim: Path, run: Path, rank: int | None, size: int = 7, **more: str) -> "subprocess.CompletedProcess[str]":
    process = start_rank(shim, run, rank, size, **more)
    _, stderr = process.communicate(timeout=20)
    return subprocess.CompletedProcess([], process.returncode, None, stderr)


def exit_note(run: Path, rank: int) -> dict[str, object]:
    record: dict[str, object] = json.loads((run / "exits" / f"rank-{rank:04d}").read_text())
    assert record.pop("pid")
    return record


ENDED = {"exit": None, "signal": None, "joined": False, "silent_s": None, "told": False, "error": None}
