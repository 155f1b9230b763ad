"""Running a training script alone, for `mpidata try`."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpidata.config import keys_of, load_job
from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.sampling.drawing import draw_at_once
from mpidata.trainer.standalone.sources import write_made_up, write_recorded
from mpidata.trainer.standalone.trainer import TRY

__all__ = ["try_script"]

# Only one trainer, its stream and loaders remain; the programs need not exist yet.
_WITHOUT = (
    "trainers.ranks=1",
    "trainers.ranks_per_replica=1",
    "checkpoint=null",
    "servers=null",
    'trainers.program=["true"]',
)
_SOLVERS = ("record=null", "solvers.function=null", 'solvers.program=["true"]')


def try_script(
    command: Sequence[str], record: str | None, job_file: str | None, overrides: Sequence[str], steps: int
) -> int:
    """Run a script, or a program that runs one, as the only trainer, without a job.

    Parameters
    ----------
    command : sequence of str
        A Python script and its arguments, or a program.
    record : str, optional
        Folder of the record that the samples come from; without it they are generated.
    job_file : str, optional
        The job file; without it that of the run that wrote the record.
    overrides : sequence of str
        Keys to replace in it.
    steps : int
        Steps of each generated simulation.

    Returns
    -------
    int
        Exit status of the program.
    """
    job_file = _job_file(record, job_file)
    keys = keys_of(job_file)
    solvers = () if "loaders" in keys and not keys & {"solvers", "fields", "parameters"} else _SOLVERS
    job = load_job(job_file, [*overrides, *_WITHOUT, *solvers])
    words = [sys.executable, *command] if command[0].endswith(".py") else list(command)
    with tempfile.TemporaryDirectory(prefix="mpidata-try-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        plan = dataclasses.replace(Plan.of(job, folder), record_path=None, journal=0)
        RunFolder(folder).private.mkdir()
        RunFolder(folder).plan.write_text(plan.text(), encoding="utf-8")
        if record is not None:
            write_recorded(folder, Path(record).resolve())
        elif plan.has_stream:
            write_made_up(folder, draw_at_once(job), steps)
        return _run(words, {**os.environ, **_variables(folder)})


def _job_file(record: str | None, job_file: str | None) -> str:
    if job_file is not None:
        return job_file
    assert record is not None
    of_run = RunFolder(Path(record).resolve().parent).job
    if not os.path.isfile(of_run):
        raise LaunchError(f"{record} is not in a run folder, so its job file is not known. Give it: --job job.yaml.")
    return str(of_run)


def _variables(folder: Path) -> dict[str, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "MPIDATA_RUN": str(folder), TRY: str(folder)}
    return alone | where


def _run(words: Sequence[str], environment: dict[str, str]) -> int:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program
    ends = signal.getsignal(signal.SIGTERM)
    try:
        process = subprocess.Popen(words, env=environment, preexec_fn=_listen)
        # SIGTERM ends the program, after whose end the folder is removed.
        signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        status = process.wait()
    except OSError as error:
        raise LaunchError(f"Cannot start {words[0]}: {error.strerror}. Give a script (*.py) or a program.") from None
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, ends)
    return status if status >= 0 else 128 - status


def _listen() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
