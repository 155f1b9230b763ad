"""How a run ended, from what it left in its folder."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
from pathlib import Path
from typing import Any

from mpidata.events import write_json
from mpidata.launch.supervise import Ending
from mpidata.losses import read_losses
from mpidata.plan import Plan
from mpidata.run_folder import RunFolder

__all__ = ["Outcome", "last_lines", "settle"]

_ABORT = re.compile(r"MPI_ABORT was invoked on rank (\d+).*?Errorcode: (-?\d+)", re.DOTALL)
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+ exited on\s+signal (\d+)")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    summary : dict
        Contents of summary.json.
    exit_status : int
        Of `mpidata run`: 0 complete or stopped by the training scripts, 1 failed, 128 + signal if that stopped it.
    log : Path or None
        The file to look into for what went wrong.
    """

    summary: dict[str, Any]
    exit_status: int
    log: Path | None


@dataclasses.dataclass(frozen=True)
class _Fault:
    sentence: str
    log: Path


def settle(run: RunFolder, plan: Plan, ending: Ending, seconds: float) -> Outcome:
    """Find out how a run ended, and write its summary if the run could not.

    Parameters
    ----------
    run : RunFolder
        Of a run whose processes have all ended.
    plan : Plan
        Of the job.
    ending : Ending
        Of its launcher.
    seconds : float
        How long it took, for a summary that is written here.
    """
    summary = _read(run.summary)
    if summary is None and ending.stopped_by is not None:
        reason = "Ctrl-C" if ending.stopped_by == signal.SIGINT else signal.Signals(ending.stopped_by).name
        summary = _write(run, {**_figures(run, plan, seconds), "status": "stopped", "reason": reason})
    if ending.stopped_by is not None and summary is not None:
        return Outcome(summary, 128 + ending.stopped_by, None)
    if summary is None:
        cause = _fault(run, plan, _records(run)) or _launcher_fault(run, plan, ending)
        summary = _write(run, {**_figures(run, plan, seconds), "status": "failed", "error": cause.sentence})
        return Outcome(summary, 1, cause.log)
    fault = _fault(run, plan, [record for record in _records(run) if _counts(record, run, summary)])
    if fault is not None and (summary.get("status") != "failed" or not summary.get("error")):
        summary = _write(run, {**summary, "status": "failed", "error": fault.sentence})
    failed = summary.get("status") not in ("complete", "stopped")
    return Outcome(summary, int(failed), fault.log if fault is not None else None)


def _counts(record: dict[str, Any], run: RunFolder, summary: dict[str, Any]) -> bool:
    """Whether a bad end is a fault of its own, not a consequence of the end of the job.

    A job that fails, and a scheduler that stops one whose ranks are late, end ranks. In a job that ended in order
    nobody does, so that what ends badly even after its summary does so by itself: a script that cannot save its model.
    """
    if record.get("told"):
        return False
    in_order = summary.get("status") in ("complete", "stopped") and record["rank"] != 0
    return in_order or bool(record["at"] < run.summary.stat().st_mtime_ns)


def _write(run: RunFolder, summary: dict[str, Any]) -> dict[str, Any]:
    """Write the summary; where the disk is full, the user still sees it."""
    try:
        write_json(run.summary, summary)
    except OSError as error:
        run.summary.with_name(f".{run.summary.name}.new").unlink(missing_ok=True)
        unwritten = f"Cannot write {run.summary}: {error.strerror}. Make room, or choose another folder with `output`."
        cause = f"{summary['error']} " if summary.get("error") else ""
        return {**summary, "status": "failed", "error": f"{cause}{unwritten}"}
    return summary


def last_lines(path: Path, count: int = 15) -> list[str]:
    """Read the last lines of a log; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 200 * count))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _records(run: RunFolder) -> list[dict[str, Any]]:
    """Read the records of ranks that ended badly, those first that nobody had told to end, and in order of time.

    The first one to go is the cause, as a rule; a launcher tells the others to end when it notices.
    """
    records = []
    for path in run.exits.glob("rank-*"):
        record = None if path.suffix else _read(path)
        if record is not None and isinstance(record.get("rank"), int):
            records.append({**record, "at": path.stat().st_mtime_ns})
    return sorted(records, key=lambda record: (bool(record.get("told")), record["at"]))


def _fault(run: RunFolder, plan: Plan, records: list[dict[str, Any]]) -> _Fault | None:
    if not records or records[0].get("told") or not 0 <= records[0]["rank"] < plan.world:
        return None
    record = records[0]
    if record.get("error"):
        return _Fault(record["error"], run.log(plan, record["rank"]))
    if record.get("signal") is not None:
        return _ended(run, plan, record["rank"], _killed_by(record["signal"]))
    return _ended(run, plan, record["rank"], f"ended with exit status {record.get('exit')}")


def _launcher_fault(run: RunFolder, plan: Plan, ending: Ending) -> _Fault:
    """Find the fault where no program left a record, in what the launcher said."""
    text = run.launcher_log.read_text(errors="replace") if run.launcher_log.exists() else ""
    if (said := re.search(r"^mpidata: (.*)$", text, re.MULTILINE)) is not None:  # a shim that could not start
        return _Fault(said[1], run.launcher_log)
    if (match := _ABORT.search(text)) and int(match[1]) < plan.world:
        return _ended(run, plan, int(match[1]), f"called MPI_Abort with {match[2]}")
    if (match := _KILLED.search(text)) and int(match[1]) < plan.world:
        return _ended(run, plan, int(match[1]), _killed_by(int(match[2])))
    how = f"was killed by {_name(-ending.status)}" if ending.status < 0 else f"ended with exit status {ending.status}"
    if not any(run.logs.glob("rank-*")):
        return _Fault(f"The launcher {how} before any rank had started. See {run.launcher_log}.", run.launcher_log)
    if ending.status == 0:
        return _ended(run, plan, 0, "ended without a summary")
    return _Fault(f"The launcher {how} and the job with it. See {run.launcher_log}.", run.launcher_log)


def _ended(run: RunFolder, plan: Plan, rank: int, how: str) -> _Fault:
    role, index, rank_in_group = plan.role_of(rank)
    of_group = f", number {rank_in_group} of the group" if plan.ranks_per_group > 1 else ""
    who = {
        "scheduler": f"The scheduler (rank {rank})",
        "trainer": f"Trainer {index} (rank {rank})",
        "solver": f"A solver of group {index} (rank {rank}{of_group})",
    }[role]
    log = run.log(plan, rank)
    return _Fault(f"{who} {how}. Its output is in {log}. Correct it and start the job again.", log)


def _killed_by(number: int) -> str:
    hint = ", perhaps because memory ran out (see `dmesg`)" if number == signal.SIGKILL else ""
    return f"was killed by {_name(number)}{hint}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _figures(run: RunFolder, plan: Plan, seconds: float) -> dict[str, Any]:
    """Make the figures of a summary from the scheduler's last progress."""
    progress = _read(run.progress) or {}
    simulations, samples = progress.get("simulations", {}), progress.get("samples", {})
    return {
        "name": run.path.parent.name,
        "run": str(run.path),
        "status": None,
        "error": None,
        "reason": None,
        "simulations": {
            "requested": simulations.get("requested", plan.simulations + plan.validation),
            "complete": simulations.get("complete", 0),
            "failed": simulations.get("failed", 0),
        },
        **read_losses(run.events),
        "samples": {
            "received": samples.get("received", 0),
            "validation": samples.get("validation", 0),
            "per_trainer": samples.get("per_trainer", []),
        },
        "batches": {"per_trainer": progress.get("batches", [])},
        "bytes": progress.get("bytes", 0),
        "seconds": round(seconds, 3),
        "training": progress.get("training", {}),
    }
