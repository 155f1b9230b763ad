"""The run folder: the names of its files (those that the C code uses come from `run_files.h`), and checks of it.

`rank_files.py` has those that depend on the plan.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
import time
from pathlib import Path

from mpidata.errors import LaunchError
from mpidata.native import constants
from mpidata.run.own_files import FOLDER_MODE, PRIVATE_MODE, check_own, check_own_folder, read_own

__all__ = ["RunFolder"]

_TRIES, _PAUSE_S = 25, 0.02
_SPAWNED = re.compile(r"group-(\d+)-(\d+)")
_SPAWNED_LOADER = re.compile(r"loader-(\d+)")


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Names of the files of a run folder.

    Parameters
    ----------
    path : Path
        The folder, absolute: `<output>/<name>/<number>`.
    """

    path: Path

    @classmethod
    def here(cls) -> RunFolder | None:
        """Return the run folder of this process's job; None outside a job."""
        run = os.environ.get("MPIDATA_RUN")
        return cls(Path(run)) if run else None

    @property
    def job(self) -> Path:
        """The job file with all defaults and overrides."""
        return self.path / "job.yaml"

    @property
    def private(self) -> Path:
        """Folder of files that only this user may read."""
        return self.plan.parent

    @property
    def plan(self) -> Path:
        """What each rank reads before it starts its program."""
        return self.path / constants.RUN_PLAN

    @property
    def alive(self) -> Path:
        """Folder with a file for each rank, which its mpidata-rank locks while it lives and removes at its end."""
        return self.path / constants.RUN_ALIVE

    @property
    def case(self) -> Path:
        """What carriers copy for each simulation; exists only if the job has a case."""
        return self.path / constants.RUN_CASE

    @property
    def lock(self) -> Path:
        """Locked by the process that starts the run; see `hold`."""
        return self.private / "lock"

    @property
    def parameters(self) -> Path:
        """The parameters of all simulations."""
        return self.path / "parameters.csv"

    @property
    def statistics(self) -> Path:
        """Statistics of the fields, if the job keeps them."""
        return self.path / "statistics.json"

    @property
    def logs(self) -> Path:
        """Folder of the programs' output."""
        return self.path / constants.RUN_LOGS

    @property
    def launcher_log(self) -> Path:
        """Output of the launcher itself."""
        return self.logs / "launcher.log"

    @property
    def exits(self) -> Path:
        """Folder of the exit notes: how programs ended abnormally."""
        return self.path / constants.RUN_EXITS

    @property
    def progress(self) -> Path:
        """The progress of the run."""
        return self.path / "progress.json"

    @property
    def summary(self) -> Path:
        """How the run ended; exists once the run has ended."""
        return self.path / constants.RUN_SUMMARY

    @property
    def metrics(self) -> Path:
        """Figures over time, one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def machine(self) -> Path:
        """The machine on which the run executes."""
        return self.path / "machine.json"

    @property
    def report(self) -> Path:
        """The report, for a browser."""
        return self.path / "report.html"

    @property
    def pictures(self) -> Path:
        """Folder of the pictures that the training script passed."""
        return self.path / "pictures"

    @property
    def losses(self) -> Path:
        """Losses by simulation, if the training reports them."""
        return self.path / "losses.csv"

    @property
    def stop(self) -> Path:
        """Exists if the job was asked to write a checkpoint and end; contains why."""
        return self.path / "stop"

    @property
    def over(self) -> Path:
        """Exists if the job has failed or was stopped: every program then ends soon, or is ended."""
        return self.path / constants.RUN_OVER

    def note_over(self) -> None:
        """Let every program end: if a rank's end does not end all, its mpidata-rank looks for this file."""
        with contextlib.suppress(OSError):
            self.over.touch()

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def events(self) -> Path:
        """The events, one JSON object per line."""
        return self.path / "events.jsonl"

    @property
    def idle_log(self) -> Path:
        """Messages about idle or silent ranks, which `mpidata run` shows."""
        return self.path / constants.RUN_IDLE

    @property
    def hosts(self) -> Path:
        """The hosts of the ranks, one per line, if there are several."""
        return self.path / constants.RUN_HOSTS

    @property
    def record(self) -> Path:
        """Folder of the record, if the job file names no other."""
        return self.path / "record"

    @property
    def journal(self) -> Path:
        """Folder of the trainers' journals, by which the run can be replayed."""
        return self.path / constants.RUN_JOURNAL

    @property
    def slurm_starts(self) -> Path:
        """The progress with which each Slurm job started the run, one JSON object per line."""
        return self.path / "slurm.jsonl"

    def hosts_of(self, component: int) -> Path:
        """File with the hosts of one component of a heterogeneous job."""
        return self.path / f"hosts-{component}"

    def summary_of(self, attempt: int) -> Path:
        """How an earlier start ended."""
        return self.path / f"summary-{attempt}.json"

    def exits_of(self, attempt: int) -> Path:
        """Folder of the exit notes of an earlier start."""
        return self.path / f"exits-{attempt}"

    def given_up(self, group: int, kind: str = "group") -> Path:
        """Exists if a group or `loader` is no longer waited for: its mpidata-ranks end its program."""
        return self.path / constants.RUN_GIVEN_UP / f"{kind}-{group}"

    def give_up(self, group: int, kind: str = "group") -> None:
        """End ranks that no message reaches: spawned ones that have not joined, or ranks in a long step."""
        path = self.given_up(group, kind)
        with contextlib.suppress(OSError):
            path.parent.mkdir(FOLDER_MODE, exist_ok=True)
            path.touch()

    def signs(self) -> list[Path]:
        """Return the files by which ranks of a start signal that they wait, or are no longer waited for."""
        return [
            path for name in (constants.RUN_GIVEN_UP, constants.RUN_WAITING) for path in (self.path / name).glob("*")
        ]

    def vanished(self, group: int, kind: str = "group") -> Path:
        """Exists if a group or `loader` was lost, but none of its ranks has left an exit note."""
        return self.exits / f"{constants.VANISHED}{kind}-{group}"

    @property
    def is_removed(self) -> bool:
        """Whether the folder was removed after its creation."""
        try:
            self.plan.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # the file system does not answer at present
            pass
        return False

    def rank_exit(self, rank: int) -> Path:
        """Exit note of a rank of the world."""
        return self.exits / f"rank-{rank:04d}"

    def rank_exits(self) -> list[Path]:
        """Return the exit notes of ranks of the world."""
        return [path for path in self.exits.glob("rank-*") if not path.suffix]

    def spawned_exits(self) -> list[tuple[int, int, Path]]:
        """Return the exit notes of ranks of spawned groups, each with its group and its rank there."""
        found = ((_SPAWNED.fullmatch(path.name), path) for path in self.exits.glob("group-*-*"))
        return [(int(match[1]), int(match[2]), path) for match, path in found if match is not None]

    def spawned_loader_exits(self) -> list[tuple[int, Path]]:
        """Return the exit notes of spawned loaders, each with its number."""
        found = ((_SPAWNED_LOADER.fullmatch(path.name), path) for path in self.exits.glob("loader-*"))
        return [(int(match[1]), path) for match, path in found if match is not None]

    def check(self) -> None:
        """Check that this is a run folder, and that no other user can have changed it.

        Raises
        ------
        LaunchError
            It is not a run folder, or others can write it.
        """
        try:
            check_own_folder(self.path)
            check_own_folder(self.private)
            for path in (self.plan, self.job):
                read_own(path)
        except (FileNotFoundError, NotADirectoryError):
            raise LaunchError(
                f"{self.path} is not a run folder: it has no plan. Name one such as runs/rod/1."
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise LaunchError(f"Cannot read the run folder {self.path}: {error}. Make it readable.") from None

    def hold(self) -> int:
        """Lock this run against other starts until the returned file descriptor is closed or this process ends.

        Raises
        ------
        LaunchError
            Another process holds the lock, or it cannot be locked.
        """
        path = self.lock  # a file that no other user can open, and thus lock
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_MODE)
        except OSError as error:
            raise LaunchError(f"Cannot write into {self.path}: {error.strerror}. Make it writable.") from None
        try:
            check_own(descriptor, path)
            _lock(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise LaunchError(f"{self.path} is still running. Wait for its end, or stop it.") from None
        except LaunchError:
            os.close(descriptor)
            raise
        except OSError:  # a file system without locks
            pass
        return descriptor


def _lock(descriptor: int) -> None:
    """Lock a file, even if another process has just locked it to see whether the run is running (`run_states.py`)."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(_PAUSE_S)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
