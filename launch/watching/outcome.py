"""How a run ended, according to the files in its folder."""

from __future__ import annotations

import dataclasses
import signal
import time
from pathlib import Path
from typing import Any

from mpidata.launch.watching.attempt import Attempt, read_figures
from mpidata.launch.watching.fault import find_fault, first_fault
from mpidata.launch.watching.supervise import LauncherEnd
from mpidata.loading.figures import summary_of
from mpidata.run.event_log import write_json
from mpidata.run.exits import Exit, signal_name
from mpidata.run.folder import RunFolder
from mpidata.run.logged_losses import TRAINER_CHANGES, read_losses
from mpidata.startup import AGAIN

__all__ = ["Outcome", "settle"]

# MPI ends the job this soon after a death that it does not survive.
_ENDS_WITHIN_S = 30.0
_LATE = " The training was complete: what the script does after it, such as saving a model, may be missing."


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
        The file to read for the cause of a failure.
    died : bool
        Whether a process died for a reason outside its program: the run may then be resumed unchanged.
    removed : bool
        Whether the run folder, and so all files that hints would name, were removed.
    early : bool
        Whether it ended because a process died before all ranks had joined.
    """

    summary: dict[str, Any]
    exit_status: int
    log: Path | None
    died: bool = False
    removed: bool = False
    early: bool = False


def settle(attempt: Attempt, end: LauncherEnd, seconds: float) -> Outcome:
    """Find out how and why a run ended, and write its summary if the run could not; parameters as for `_settle`."""
    outcome = _settle(attempt, end, seconds)
    if end.cleaned is None or outcome.summary.get("status") != "failed" or attempt.run.is_removed:
        return outcome
    cause = (
        f"The folder for the temporary files of this job, {end.cleaned}, was removed while it ran, for example by a "
        f"cleanup of {end.cleaned.parent}. Set TMPDIR to a folder that is not cleaned."
    )
    error = " ".join(filter(None, [cause, outcome.summary.get("error")]))
    return dataclasses.replace(outcome, summary=_write(attempt.run, {**outcome.summary, "error": error}))


def _settle(attempt: Attempt, end: LauncherEnd, seconds: float) -> Outcome:
    """Find out how a run ended, and write its summary if the run could not.

    Parameters
    ----------
    attempt : Attempt
        Whose processes have all ended.
    end : LauncherEnd
        Of its launcher.
    seconds : float
        Duration of the run, for a summary that is written here.
    """
    run = attempt.run
    if run.is_removed:
        return _removed(attempt, seconds)
    summary, at = read_figures(run.summary), _changed_at(run.summary)
    if summary is None and end.unwritten is not None:
        summary, at = end.unwritten, time.time_ns()
    if _is_stop(end, summary):
        return _stopped(attempt, end, summary, seconds)
    if summary is None:
        blamed = _blamed(attempt)
        early = _early_death(attempt) if all(ended.told for ended in blamed) else None
        cause = find_fault(attempt, end, blamed if early is None else [early])
        summary = _write(run, {**_figures(attempt, seconds), "status": "failed", "error": cause.sentence}, cause.died)
        return Outcome(summary, 1, cause.log, cause.died, early=early is not None or not attempt.joined())
    fault = first_fault(attempt, [ended for ended in _blamed(attempt) if _counts(ended, at, summary)])
    died, log = bool(summary.get("died")), _log(summary) or (fault.log if fault is not None else None)
    if fault is not None and (summary.get("status") != "failed" or not summary.get("error")):
        trained = summary.get("status") == "complete"
        died, error = fault.died and not trained and fault.at < at, fault.sentence + _LATE * trained
        summary, log = _write(run, {**summary, "status": "failed", "error": error}, died), fault.log
    elif end.unwritten is not None:  # the disk may have room again
        summary = _write(run, summary)
    failed = summary.get("status") not in ("complete", "stopped")
    return Outcome(summary, int(failed), log, failed and died, early=not attempt.joined())


def _removed(attempt: Attempt, seconds: float) -> Outcome:
    error = (
        f"The run folder {attempt.run.path} was removed while the job ran, so the job was ended. Start the job again, "
        "and remove run folders only when their jobs have ended."
    )
    return Outcome({**_figures(attempt, seconds), "status": "failed", "error": error}, 1, None, removed=True)


def _is_stop(end: LauncherEnd, summary: dict[str, Any] | None) -> bool:
    """Whether the run was stopped from outside.

    A batch system that ends a job also signals the ranks, on some hosts earlier than on others. The deaths that the
    scheduler sees then are not faults.
    """
    told = end.by_batch_system is not None or end.stopped_by is not None
    if not told or summary is None or summary.get("status") == "stopped":
        return told
    by_batch_system = end.by_batch_system is not None or end.stopped_by == signal.SIGTERM
    return by_batch_system and summary.get("status") == "failed" and bool(summary.get("died"))


def _stopped(attempt: Attempt, end: LauncherEnd, summary: dict[str, Any] | None, seconds: float) -> Outcome:
    number = end.stopped_by or signal.SIGTERM
    by = "Ctrl-C" if number == signal.SIGINT else signal_name(number)
    reason = end.by_batch_system or by
    if summary is None:
        summary = _write(attempt.run, {**_figures(attempt, seconds), "status": "stopped", "reason": reason})
    elif summary.get("status") == "failed":
        whole = {name: value for name, value in summary.items() if name != "died"}
        summary = _write(attempt.run, {**whole, "status": "stopped", "error": None, "reason": reason})
    elif end.unwritten is not None:
        summary = _write(attempt.run, summary)
    return Outcome(summary, AGAIN if number in (signal.SIGTERM, signal.SIGUSR1) else 128 + number, None)


def _blamed(attempt: Attempt) -> list[Exit]:
    """Read the bad ends that can have ended the job: it survives some of solvers and trainers."""
    survived = attempt.fault_tolerant and attempt.joined()
    lost = attempt.lost_trainers()
    ends = [ended for ended in attempt.bad_ends() if ended.rank not in lost]
    return [r for r in ends if not survived or (r.rank or 0) < attempt.plan.scripts.stop]


def _early_death(attempt: Attempt) -> Exit | None:
    """Find a death from before all ranks had joined, in a job that would have survived it later."""
    joined_at = attempt.joined_at()
    if not attempt.fault_tolerant or time.time_ns() - joined_at > _ENDS_WITHIN_S * 1e9:
        return None
    return next((ended for ended in attempt.bad_ends() if not ended.told and ended.at < joined_at), None)


def _counts(ended: Exit, at: int, summary: dict[str, Any]) -> bool:
    """Whether a bad end is a fault of its own, not a consequence of the job's end at the time `at`.

    A job that fails, and a scheduler that stops late ranks, end ranks. If the job ended in order, nobody ends ranks: a
    bad end even after its summary is a fault of its own, such as a script that cannot save its model.
    """
    if ended.told:
        return False
    in_order = (summary.get("status") in ("complete", "stopped") or summary.get("in_order")) and ended.rank != 0
    return in_order or ended.at < at


def _write(run: RunFolder, summary: dict[str, Any], died: bool = False) -> dict[str, Any]:
    """Write the summary; if the disk is full, the user still sees it."""
    summary = {**summary, **({"died": True} if died else {})}
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


def _log(summary: dict[str, Any]) -> Path | None:
    log = summary.get("log")
    return Path(log) if isinstance(log, str) else None


def _figures(attempt: Attempt, seconds: float) -> dict[str, Any]:
    """Make the figures of a summary from the scheduler's last progress."""
    run, plan = attempt.run, attempt.plan
    progress = read_figures(run.progress) or {}
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
            **({"cancelled": n} if (n := simulations.get("cancelled")) else {}),
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
        **({"loaded": loaded} if (loaded := summary_of(progress.get("loaded", {}))) else {}),
        **{key: progress[key] for key in TRAINER_CHANGES if progress.get(key)},
    }
