"""How programs of a job ended: the exit notes of mpidata-rank on abnormal ends, and the last lines of their logs."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import signal
from pathlib import Path

from mpidata.native.item import text_of
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun

__all__ = [
    "ANOTHER_START",
    "Exit",
    "first_exit",
    "has_vanished",
    "last_lines",
    "read_exit",
    "read_exit_note",
    "signal_name",
    "tail",
    "without_noise",
]

ANOTHER_START = "mpidata: Another start of this run."
"""The line that mpidata-rank writes to a log between the outputs of two starts."""

_NOISE = re.compile(r"NBC_Progress: |OPAL ERROR: .*ompi_mpi_finalize\.c")
_ANOTHER_HAS_DIED = (75, 76, 77)  # MPI_ERR_PROC_FAILED, _PROC_FAILED_PENDING and MPI_ERR_REVOKED of Open MPI


@dataclasses.dataclass(frozen=True)
class Exit:
    """The abnormal end of a program.

    Parameters
    ----------
    cause : str
        `signal`; `exit`, it ended by itself; `raised`, by a Python exception; `abort`, it called MPI_Abort; `silent`,
        it hung and was ended; `not_started`, it could not be started; `late`, it did not join in time and was ended;
        or `unknown`.
    signal, status : int or None
        The signal that killed it; its exit status, or the code that it passed to MPI_Abort.
    silent_s : float or None
        For how long it had been silent.
    joined : bool
        Whether it had joined the job.
    told : bool
        Whether it ended as a consequence: it was told to, its group was lost, or the job was over.
    error : str or None
        The message of mpidata-rank, if any.
    rank : int or None
        Its rank in the world; None if it was spawned.
    at : int
        Unix time of its end, in ns.
    silent_key : str or None
        The key of the job file that limits the silence.
    raised : str or None
        What it raised, a predicate to follow its name.
    item : str or None
        The item that a loader worked on.
    batches : int
        Batches that a trainer had drawn: of a stream in total, of loaders since its start; 0 if unknown.
    stopped : bool
        Whether a signal such as SIGSTOP had stopped it while it was silent.
    """

    cause: str
    signal: int | None = None
    status: int | None = None
    silent_s: float | None = None
    joined: bool = False
    told: bool = False
    error: str | None = None
    rank: int | None = None
    at: int = 0
    silent_key: str | None = None
    raised: str | None = None
    item: str | None = None
    batches: int = 0
    stopped: bool = False

    def sentence(self) -> str:
        """Return how it ended, a predicate to follow its name: `was killed by SIGSEGV`."""
        return f"{self._sentence()}, while it worked on {text_of(self.item)}" if self.item else self._sentence()

    def _sentence(self) -> str:
        if self.cause == "silent":
            return f"was silent for {self.silent_s:.0f} s, longer than {self.silent_key} allows{self._why_silent()}"
        if self.cause == "raised":
            return str(self.raised)
        if self.cause == "abort":
            return f"called MPI_Abort with {self.status}"
        if self.cause == "late":
            return "did not join the job in time"
        if self.cause == "not_started":
            return "could not be started"
        if self.cause == "signal":
            hint = ", perhaps because memory ran out (see `dmesg`)" if self.signal == signal.SIGKILL else ""
            return f"was killed by {signal_name(self.signal or 0)}{hint}"
        if self.cause == "exit" and self.status == 0:
            return f"ended with exit status 0 {'before mpidata_finalize' if self.joined else 'without mpidata_init'}"
        hint = " (a program or a shared library was not found)" if self.status == 127 else ""
        return f"ended with exit status {self.status}{hint}" if self.cause == "exit" else "ended for an unknown reason"

    @property
    def follows(self) -> bool:
        """Whether it can only be a consequence, including MPI's abort after another rank has died."""
        return self.told or (self.cause == "abort" and self.status in _ANOTHER_HAS_DIED)

    def _why_silent(self) -> str:
        if self.stopped:
            return ". A signal, for example SIGSTOP, had stopped it"
        if self.rank is None or not str(self.silent_key).startswith("solvers."):
            return ""
        return (
            ". It may wait in a call on MPI_COMM_WORLD, which contains all ranks of the job in the split start, or in "
            "a collective call of mpidata (step, fail) that only some ranks of its group made"
        )


def read_exit(run: Path, plan: Plan, group: int, rank_in_group: int) -> Exit | None:
    """Read the exit note of a rank of a solver group.

    Parameters
    ----------
    run : Path
        The run folder.
    plan : Plan
        The job's plan.
    group, rank_in_group : int
        The rank, in a group of the world or in a spawned one.

    Returns
    -------
    Exit or None
        None if there is no note: it still runs, ended in order, or died with its mpidata-rank.
    """
    return read_exit_note(PlannedRun(RunFolder(run), plan).group_exit(group, rank_in_group))


def first_exit(run: Path, plan: Plan, group: int) -> tuple[int, Exit] | None:
    """Find the rank of a group that ended abnormally first, and how; ranks that were told to end come last."""
    found = [(rank, read_exit(run, plan, group, rank)) for rank in range(plan.ranks_per_group)]
    ended = [(rank, note) for rank, note in found if note is not None]
    return min(ended, key=lambda entry: (entry[1].told, entry[1].at), default=None)


def read_exit_note(path: Path) -> Exit | None:
    """Read one file of the folder `exits`; None if it does not exist or is invalid."""
    try:
        at = path.stat().st_mtime_ns
        # Messages of a program, and its names, may be in any encoding.
        note = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        number, status, silent_s = note["signal"], note["exit"], note.get("silent_s")
        joined, told, error = bool(note.get("joined")), bool(note.get("told")), note.get("error")
        rank, silent_key, raised = note.get("rank"), note.get("silent_key"), note.get("raised")
        item, batches, stopped = note.get("item"), int(note.get("batches") or 0), note.get("stopped") is True
        abort = None if note.get("abort") is None else int(note["abort"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if silent_s is not None:
        cause = "silent"
    elif note.get("late"):
        cause = "late"
    elif abort is not None:
        cause, status = "abort", abort
    elif error and status:
        cause = "not_started"
    elif raised:
        cause = "raised"
    else:
        cause = "signal" if number is not None else "exit" if status is not None else "unknown"
    more = silent_key, raised, item, batches, stopped
    return Exit(cause, number, status, silent_s, joined, told, error, rank, at, *more)


def has_vanished(run: RunFolder, name: str) -> bool:
    """Whether a rank was killed with its mpidata-rank: its file in `private/alive` exists, but is no longer locked.

    Parameters
    ----------
    run : RunFolder
        The job's run folder.
    name : str
        Name of its exit note: `rank-0002`.

    Returns
    -------
    bool
        Also False if it ended in order, or if the file system has no locks.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(run.alive / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.fstat(descriptor).st_nlink > 0
        finally:
            os.close(descriptor)
    return False


def last_lines(run: Path, plan: Plan, group: int, rank_in_group: int, n: int = 10) -> list[str]:
    """Return the last lines that a rank of a solver group printed; none if there is no log."""
    return tail(PlannedRun(RunFolder(run), plan).group_log(group, rank_in_group), n)


def tail(path: Path, count: int) -> list[str]:
    """Return the last lines of a log from the last start of the run; none if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - 200 * count))
            lines = without_noise(file.read().decode(errors="replace").splitlines())[-count:]
    except OSError:
        return []
    begun = max((number for number, line in enumerate(lines, 1) if line == ANOTHER_START), default=0)
    return lines[begun:]


def without_noise(lines: list[str]) -> list[str]:
    """Remove lines that belong only in logs: one, and an empty one, that Open MPI writes if another rank dies."""
    noise = [_NOISE.search(line) is not None for line in lines]
    behind = [False, *noise]
    return [line for line, own, last in zip(lines, noise, behind, strict=False) if not own and (line or not last)]


def signal_name(number: int) -> str:
    """Return the name of a signal: `SIGSEGV`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
