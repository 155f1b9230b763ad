"""The cause of a job's end: the first bad end that nobody had requested, or what the launcher has printed."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.supervise import LauncherEnd
from mpidata.run.exits import Exit, read_exit_note, signal_name
from mpidata.run.rank_files import PlannedRun

__all__ = ["Fault", "find_fault", "first_fault"]

_ABORT = re.compile(r"MPI_ABORT was invoked on rank (\d+).*?Errorcode: (-?\d+)", re.DOTALL)
_LOST_HOST = re.compile(r"lost communication with a remote daemon.*?Remote daemon:\s+\S+ on node (\S+)", re.DOTALL)
_INIT = re.compile(r"An error occurred in MPI_Init")
_INIT_EXITS = (14, 16, 17)  # MPI_ERR_UNKNOWN, MPI_ERR_OTHER and MPI_ERR_INTERN of Open MPI
_NO_NOTE = (
    "is gone without an exit note: it was killed together with its mpidata-rank, or the note could not be written"
)
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+ exited on\s+signal (\d+)")
# Of MPICH's mpirun, which does not name the rank; the second, if it was just about to answer the process.
_KILLED_ONE = re.compile(r"EXIT STRING: .*\(signal (\d+)\)|unable to forward PMI response to MPI process")


@dataclasses.dataclass(frozen=True)
class Fault:
    """The cause of a job's end.

    Parameters
    ----------
    sentence : str
        For the user.
    log : Path
        The file to read.
    died : bool
        Whether a process died for a reason outside its program: the run may then be resumed unchanged.
    at : int
        When, in ns of Unix time.
    """

    sentence: str
    log: Path
    died: bool = False
    at: int = 0


def find_fault(attempt: Attempt, end: LauncherEnd, blamed: list[Exit]) -> Fault:
    """Find the cause of the end of a job that could not write its summary.

    Parameters
    ----------
    attempt : Attempt
        Whose processes have all ended.
    end : LauncherEnd
        Of its launcher.
    blamed : list of Exit
        Bad ends that can have ended the job, the most likely first.
    """
    return (
        _lost_host(attempt, end)
        or _vanished(attempt, end)
        or _failed_init(attempt, blamed)
        or _first(first_fault(attempt, blamed), _fault_of_a_spawned_group(attempt), _fault_of_a_spawned_loader(attempt))
        or _launcher_fault(attempt, end)
    )


def _lost_host(attempt: Attempt, end: LauncherEnd) -> Fault | None:
    match = _LOST_HOST.search(attempt.launcher_said())
    name = end.lost_host or (match[1] if match is not None else None)
    if name is None:
        return None
    log = attempt.run.launcher_log
    return Fault(f"Host {name} is lost: it no longer answers. See {log}. {_resume(attempt)}", log, died=True)


def _vanished(attempt: Attempt, end: LauncherEnd) -> Fault | None:
    if end.vanished is None:
        return None
    spawned = _fault_of_a_spawned_group(attempt) or _fault_of_a_spawned_loader(attempt)
    if spawned is not None or (not attempt.fault_tolerant and any(not ended.told for ended in attempt.bad_ends())):
        return None  # the launcher has killed all because one has ended badly
    return _ended(attempt, end.vanished, _NO_NOTE, True)


def _failed_init(attempt: Attempt, blamed: list[Exit]) -> Fault | None:
    """Find a failure of Open MPI's MPI_Init, which exits like a program: a rank died during it that left no note."""
    if attempt.joined() or not blamed or not _INIT.search(attempt.launcher_said()):
        return None
    first = blamed[0]
    if first.told or first.joined or first.cause != "exit" or first.status not in _INIT_EXITS:
        return None
    why = "a rank was killed meanwhile together with its mpidata-rank, or MPI cannot connect the ranks"
    log = attempt.run.launcher_log
    return Fault(f"MPI_Init failed: {why}. See {log}. {_resume(attempt)}", log, died=True, at=first.at)


def first_fault(attempt: Attempt, bad_ends: list[Exit]) -> Fault | None:
    """Find the fault in the first bad end that nobody had requested."""
    if not bad_ends or bad_ends[0].told or bad_ends[0].rank is None:
        return None
    ended, rank = bad_ends[0], bad_ends[0].rank
    solver = rank >= attempt.plan.scripts.stop
    # A script that ends with an exit status has failed; a solver that does so during the job has died.
    died = ended.cause in ("signal", "silent") or (ended.cause in ("exit", "abort") and solver and ended.joined)
    if ended.error:
        return Fault(ended.error, PlannedRun(attempt.run, attempt.plan).log(rank), died, ended.at)
    return _ended(attempt, rank, ended.sentence(), died, ended.at)


def _fault_of_a_spawned_group(attempt: Attempt) -> Fault | None:
    """Find the fault in the first bad end of a spawned solver, if its death ends the others."""
    if attempt.fault_tolerant:
        return None
    found = [(group, rank, read_exit_note(path)) for group, rank, path in attempt.run.spawned_exits()]
    own = [(group, rank, ended) for group, rank, ended in found if ended is not None and not ended.told]
    if not own:
        return None
    group, rank_in_group, ended = min(own, key=lambda entry: entry[2].at)
    log = PlannedRun(attempt.run, attempt.plan).group_log(group, rank_in_group)
    who = f"A solver of the spawned group {group}"
    sentence = ended.error or f"{who} {ended.sentence()}. Its output is in {log}. {_resume(attempt)}"
    return Fault(sentence, log, ended.joined, ended.at)


def _fault_of_a_spawned_loader(attempt: Attempt) -> Fault | None:
    """Find the fault in the first bad end of a spawned loader, if its death ends the others."""
    if attempt.fault_tolerant:
        return None
    found = [(loader, read_exit_note(path)) for loader, path in attempt.run.spawned_loader_exits()]
    own = [(loader, ended) for loader, ended in found if ended is not None and not ended.told]
    if not own:
        return None
    loader, ended = min(own, key=lambda entry: entry[1].at)
    log = PlannedRun(attempt.run, attempt.plan).loader_log(loader)
    sentence = f"The spawned loader {loader} {ended.sentence()}. Its output is in {log}. {_resume(attempt)}"
    return Fault(ended.error or sentence, log, ended.joined, ended.at)


def _first(*faults: Fault | None) -> Fault | None:
    """Return the earliest fault: MPI ends the other ranks with errors of their own."""
    return min((fault for fault in faults if fault is not None), key=lambda fault: fault.at, default=None)


def _launcher_fault(attempt: Attempt, end: LauncherEnd) -> Fault:
    """Find the fault in the launcher's output, if no program has left an exit note."""
    plan, log = attempt.plan, attempt.run.launcher_log
    text, joined = attempt.launcher_said(), attempt.joined()
    if (said := re.search(r"^mpidata: (.*)$", text, re.MULTILINE)) is not None and not joined:
        return Fault(said[1], log)  # a shim that could not start
    if (match := _ABORT.search(text)) and int(match[1]) < plan.world:
        solver = int(match[1]) >= plan.scripts.stop
        return _ended(attempt, int(match[1]), f"called MPI_Abort with {match[2]}", solver and joined)
    if (match := _KILLED.search(text)) and int(match[1]) < plan.world:
        return _ended(attempt, int(match[1]), Exit("signal", int(match[2])).sentence(), True)
    if match := _KILLED_ONE.search(text):
        how = Exit("signal", int(match[1])).sentence() if match[1] else "is gone"
        return Fault(f"The mpidata-rank of a rank {how}, and the job with it. See {log}. {_resume(attempt)}", log, True)
    if end.ended_ranks:
        why = "The launcher has ended the ranks, because it received SIGTERM or SIGINT, or because it failed."
        return Fault(f"{why} See {log}. {_resume(attempt)}", log, True)
    killed = end.status < 0
    how = f"was killed by {signal_name(-end.status)}" if killed else f"ended with exit status {end.status}"
    if not any(attempt.run.logs.glob("rank-*")):
        return Fault(f"The launcher {how} before any rank had started. See {log}.", log, killed)
    if end.status == 0:
        return _ended(attempt, 0, "ended without a summary", joined)
    died = killed or joined
    fix = f"See {log}. {_resume(attempt)}" if died else f"See {log}."
    return Fault(f"The launcher {how} and the job with it. {fix}", log, died)


def _ended(attempt: Attempt, rank: int, how: str, died: bool, at: int = 0) -> Fault:
    plan, log = attempt.plan, PlannedRun(attempt.run, attempt.plan).log(rank)
    role, index, rank_in_group = plan.role_of(rank)
    of_group = f", number {rank_in_group} of the group" if plan.ranks_per_group > 1 else ""
    who = {
        "scheduler": f"The scheduler (rank {rank})",
        "trainer": f"Trainer {index} (rank {rank})",
        "solver": f"A solver of group {index} (rank {rank}{of_group})",
        "loader": f"Loader {index} (rank {rank})",
        "inference": f"Inference rank {index} (rank {rank})",
        "learner": f"Learner {index} (rank {rank})",
        "server": f"Server {index} (rank {rank})",
        "mate": f"Mate {rank_in_group} of trainer {index} (rank {rank})",
    }[role]
    resume = _resume(attempt) if died else f"Correct it. {_resume(attempt)}"
    return Fault(f"{who} {how}. Its output is in {log}. {resume}", log, died, at)


def _resume(attempt: Attempt) -> str:
    return f"Resume the job with `mpidata run --resume {shlex.quote(str(attempt.run.path))}`."
