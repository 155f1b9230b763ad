"""How a run ended, from what it left in its folder."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.supervise import Ending
from mpidata.run.events import write_json
from mpidata.run.exits import Exit, read_record, signal_name
from mpidata.run.folder import RunFolder
from mpidata.run.lost import read_losses

__all__ = ["AGAIN", "Outcome", "settle"]

AGAIN = 75
"""Exit status of a run that was told to end and can be run again: EX_TEMPFAIL."""

_ABORT = re.compile(r"MPI_ABORT was invoked on rank (\d+).*?Errorcode: (-?\d+)", re.DOTALL)
_LOST_HOST = re.compile(r"lost communication with a remote daemon.*?Remote daemon:\s+\S+ on node (\S+)", re.DOTALL)
_NO_RECORD = (
    "is gone without a record: it was killed together with its mpidata-rank, or the record could not be written"
)
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+ exited on\s+signal (\d+)")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    summary : dict
        Contents of summary.json.
    exit_status : int
        Of `mpidata run`: 0 complete or stopped by the training scripts, 1 failed, 75 stopped by SIGTERM or SIGUSR1,
        128 + signal if another one stopped it.
    log : Path or None
        The file to look into for what went wrong.
    died : bool
        Whether it failed because a process died, not because of what a program did: then it may be resumed as it is.
    """

    summary: dict[str, Any]
    exit_status: int
    log: Path | None
    died: bool = False


@dataclasses.dataclass(frozen=True)
class _Fault:
    sentence: str
    log: Path
    died: bool = False
    at: int = 0  # when, in ns of Unix time


def settle(attempt: Attempt, ending: Ending, seconds: float) -> Outcome:
    """Find out how a run ended, and write its summary if the run could not.

    Parameters
    ----------
    attempt : Attempt
        Whose processes have all ended.
    ending : Ending
        Of its launcher.
    seconds : float
        How long it took, for a summary that is written here.
    """
    run = attempt.run
    if run.is_removed:
        return _removed(attempt, seconds)
    summary, at = _read(run.summary), _changed_at(run.summary)
    if summary is None and ending.unwritten is not None:
        summary, at = ending.unwritten, time.time_ns()
    if _is_stop(ending, summary):
        return _stopped(attempt, ending, summary, seconds)
    if summary is None:
        cause = (
            _lost_host(attempt, ending)
            or _vanished(attempt, ending)
            or _first(_fault(attempt, _blamed(attempt)), _fault_of_a_spawned_group(attempt))
            or _launcher_fault(attempt, ending)
        )
        summary = _write(run, {**_figures(attempt, seconds), "status": "failed", "error": cause.sentence})
        return Outcome(summary, 1, cause.log, cause.died)
    fault = _fault(attempt, [record for record in _blamed(attempt) if _counts(record, at, summary)])
    died, log = bool(summary.get("died")), _log(summary) or (fault.log if fault is not None else None)
    if fault is not None and (summary.get("status") != "failed" or not summary.get("error")):
        died = fault.died and summary.get("status") != "complete" and fault.at < at
        summary, log = _write(run, {**summary, "status": "failed", "error": fault.sentence}), fault.log
    elif ending.unwritten is not None:  # there may be room again
        summary = _write(run, summary)
    failed = summary.get("status") not in ("complete", "stopped")
    return Outcome(summary, int(failed), log, failed and died)


def _removed(attempt: Attempt, seconds: float) -> Outcome:
    error = (
        f"The run folder {attempt.run.path} was removed while the job ran, so the job was ended. Start it again, and "
        "remove run folders only when their jobs have ended."
    )
    return Outcome({**_figures(attempt, seconds), "status": "failed", "error": error}, 1, None)


def _is_stop(ending: Ending, summary: dict[str, Any] | None) -> bool:
    """Whether the run was stopped from outside.

    A batch system that ends a job tells the ranks, too, on one host earlier than on another. The deaths that the
    scheduler sees then are no faults.
    """
    told = ending.by_batch_system is not None or ending.stopped_by is not None
    if not told or summary is None or summary.get("status") == "stopped":
        return told
    by_batch_system = ending.by_batch_system is not None or ending.stopped_by == signal.SIGTERM
    return by_batch_system and summary.get("status") == "failed" and bool(summary.get("died"))


def _stopped(attempt: Attempt, ending: Ending, summary: dict[str, Any] | None, seconds: float) -> Outcome:
    number = ending.stopped_by or signal.SIGTERM
    by = "Ctrl-C" if number == signal.SIGINT else signal_name(number)
    reason = ending.by_batch_system or by
    if summary is None:
        summary = _write(attempt.run, {**_figures(attempt, seconds), "status": "stopped", "reason": reason})
    elif summary.get("status") == "failed":
        whole = {name: value for name, value in summary.items() if name != "died"}
        summary = _write(attempt.run, {**whole, "status": "stopped", "error": None, "reason": reason})
    elif ending.unwritten is not None:
        summary = _write(attempt.run, summary)
    return Outcome(summary, AGAIN if number in (signal.SIGTERM, signal.SIGUSR1) else 128 + number, None)


def _blamed(attempt: Attempt) -> list[Exit]:
    """Read the records of bad ends that can have ended the job: a solver's is survived where MPI allows it."""
    survived = attempt.fault_tolerant and attempt.joined()
    return [r for r in attempt.records() if not survived or (r.rank or 0) <= attempt.plan.trainers]


def _counts(record: Exit, at: int, summary: dict[str, Any]) -> bool:
    """Whether a bad end is a fault of its own, not a consequence of the end of the job, at the time `at`.

    A job that fails, and a scheduler that stops one whose ranks are late, end ranks. In a job that ended in order
    nobody does, so that what ends badly even after its summary does so by itself: a script that cannot save its model.
    """
    if record.told:
        return False
    in_order = (summary.get("status") in ("complete", "stopped") or summary.get("in_order")) and record.rank != 0
    return in_order or record.at < at


def _write(run: RunFolder, summary: dict[str, Any]) -> dict[str, Any]:
    """Write the summary; where the disk is full, the user still sees it."""
    try:
        write_json(run.summary, summary)
    except OSError as error:
        unwritten = f"Cannot write {run.summary}: {error.strerror}. Make room, or choose another folder with `output`."
        cause = f"{summary['error']} " if summary.get("error") else ""
        return {**summary, "status": "failed", "error": f"{cause}{unwritten}"}
    return summary


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _log(summary: dict[str, Any]) -> Path | None:
    log = summary.get("log")
    return Path(log) if isinstance(log, str) else None


def _lost_host(attempt: Attempt, ending: Ending) -> _Fault | None:
    match = _LOST_HOST.search(attempt.launcher_said())
    name = ending.lost_host or (match[1] if match is not None else None)
    if name is None:
        return None
    log = attempt.run.launcher_log
    return _Fault(f"Host {name} is lost: it does not answer any more. See {log}. {_resume(attempt)}", log, died=True)


def _vanished(attempt: Attempt, ending: Ending) -> _Fault | None:
    if ending.vanished is None:
        return None
    if not attempt.fault_tolerant and any(not record.told for record in attempt.records()):
        return None  # the launcher has killed all, as one has ended badly
    return _ended(attempt, ending.vanished, _NO_RECORD, True)


def _fault(attempt: Attempt, records: list[Exit]) -> _Fault | None:
    """Find the fault in the first record that nobody had told to come."""
    if not records or records[0].told or records[0].rank is None:
        return None
    record, rank = records[0], records[0].rank
    solver = rank > attempt.plan.trainers
    # A script that ends with an exit status has failed; a solver that does so in the middle has died.
    died = record.cause in ("signal", "silent") or (record.cause in ("exit", "abort") and solver and record.joined)
    if record.error:
        return _Fault(record.error, attempt.run.log(attempt.plan, rank), died, record.at)
    return _ended(attempt, rank, record.sentence(), died, record.at)


def _fault_of_a_spawned_group(attempt: Attempt) -> _Fault | None:
    """Find the fault in the first record of a rank that was spawned, where its death ends the others."""
    if attempt.fault_tolerant:
        return None
    found = [(group, rank, read_record(path)) for group, rank, path in attempt.run.spawned_exits()]
    own = [(group, rank, record) for group, rank, record in found if record is not None and not record.told]
    if not own:
        return None
    group, rank_in_group, record = min(own, key=lambda entry: entry[2].at)
    log = attempt.run.group_log(attempt.plan, group, rank_in_group)
    who = f"A solver of the spawned group {group}"
    sentence = record.error or f"{who} {record.sentence()}. Its output is in {log}. {_resume(attempt)}"
    return _Fault(sentence, log, record.joined, record.at)


def _first(*faults: _Fault | None) -> _Fault | None:
    """Choose the one that came first: MPI ends others with an error of theirs."""
    return min((fault for fault in faults if fault is not None), key=lambda fault: fault.at, default=None)


def _launcher_fault(attempt: Attempt, ending: Ending) -> _Fault:
    """Find the fault where no program left a record, in what the launcher said."""
    plan, log = attempt.plan, attempt.run.launcher_log
    text, joined = attempt.launcher_said(), attempt.joined()
    if (said := re.search(r"^mpidata: (.*)$", text, re.MULTILINE)) is not None and not joined:
        return _Fault(said[1], log)  # a shim that could not start
    if (match := _ABORT.search(text)) and int(match[1]) < plan.world:
        solver = int(match[1]) > plan.trainers
        return _ended(attempt, int(match[1]), f"called MPI_Abort with {match[2]}", solver and joined)
    if (match := _KILLED.search(text)) and int(match[1]) < plan.world:
        return _ended(attempt, int(match[1]), Exit("signal", int(match[2])).sentence(), True)
    killed = ending.status < 0
    how = f"was killed by {signal_name(-ending.status)}" if killed else f"ended with exit status {ending.status}"
    if not any(attempt.run.logs.glob("rank-*")):
        return _Fault(f"The launcher {how} before any rank had started. See {log}.", log, killed)
    if ending.status == 0:
        return _ended(attempt, 0, "ended without a summary", joined)
    died = killed or joined
    fix = f"See {log}. {_resume(attempt)}" if died else f"See {log}."
    return _Fault(f"The launcher {how} and the job with it. {fix}", log, died)


def _ended(attempt: Attempt, rank: int, how: str, died: bool, at: int = 0) -> _Fault:
    plan, log = attempt.plan, attempt.run.log(attempt.plan, rank)
    role, index, rank_in_group = plan.role_of(rank)
    of_group = f", number {rank_in_group} of the group" if plan.ranks_per_group > 1 else ""
    who = {
        "scheduler": f"The scheduler (rank {rank})",
        "trainer": f"Trainer {index} (rank {rank})",
        "solver": f"A solver of group {index} (rank {rank}{of_group})",
    }[role]
    resume = _resume(attempt) if died else f"Correct it. {_resume(attempt)}"
    return _Fault(f"{who} {how}. Its output is in {log}. {resume}", log, died, at)


def _resume(attempt: Attempt) -> str:
    return f"Resume the job with `mpidata run --resume {shlex.quote(str(attempt.run.path))}`."


def _figures(attempt: Attempt, seconds: float) -> dict[str, Any]:
    """Make the figures of a summary from the scheduler's last progress."""
    run, plan = attempt.run, attempt.plan
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
