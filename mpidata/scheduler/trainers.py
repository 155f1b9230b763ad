"""Which trainer is at fault if several fail: one that died, hangs or left makes the others fail and report it.

So does the death of a parameter server, or of a mate of a trainer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpidata.checkpoint import numbers
from mpidata.errors import MpidataError
from mpidata.loading.figures import LEFT_EARLY, UNTRAINED, WAITS_S
from mpidata.run import deadlines
from mpidata.run.exits import Exit, has_vanished, read_exit_note
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.run.side_channel import say_late
from mpidata.scheduler.deaths.lost_groups import VANISHED

__all__ = ["FirstCause", "DepartureWatch", "SilenceWatch", "Verdict"]

_SIGN_S = 3.0
# Errors of torch.distributed and of MPI, such as MPI_ERR_PROC_FAILED; sentences of mpidata are none.
_LOST_PEER = re.compile(r"gloo|nccl|\bmpi(?:_|\b)|\bpeer|timed? ?out|connection|socket", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """Why the trainers have failed.

    Attributes
    ----------
    error : str
        For the user.
    log : Path
        The log of the rank at fault.
    died : bool
        Whether a process died from outside its program, for example by a signal.
    by_script : bool
        Whether a script has reported the error: the others may then leave in order.
    """

    error: str
    log: Path
    died: bool = False
    by_script: bool = False


class SilenceWatch:
    """Detects trainers that no longer give a sign of life: they were stopped, or their host hangs.

    Parameters
    ----------
    plan : Plan
        The job's plan.

    Notes
    -----
    Not thread-safe. Times are in seconds of a monotonic clock.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._heard: dict[int, float] = {}
        self._named: set[int] = set()
        self._left: set[int] = set()
        self._looked = float("inf")

    def heard(self, trainer: int, now: float) -> None:
        """Note a sign of life, which trainers give five times a second."""
        self._heard[trainer] = now
        self._named.discard(trainer)

    def left(self, trainer: int) -> None:
        """Expect no more signs of life of a trainer."""
        self._left.add(trainer)

    def has_begun(self, trainer: int) -> bool:
        """Whether a trainer has ever given a sign of life."""
        return trainer in self._heard

    def since(self, trainer: int, now: float) -> float:
        """Return for how long a trainer was silent; 0.0 if not for long, or if it has left or not started."""
        silent_s = now - self._heard.get(trainer, now) if trainer not in self._left else 0.0
        return silent_s if silent_s > _SIGN_S else 0.0

    def tick(self, now: float, trainers: Iterable[int]) -> list[int]:
        """Print which of these trainers were silent for long, each once; returns them."""
        if now - self._looked > _SIGN_S:  # this process was stopped itself
            self._heard = dict.fromkeys(self._heard, now)
        self._looked = now
        named = [one for one in trainers if self.since(one, now) > deadlines.SILENT_S and one not in self._named]
        self._named.update(named)
        for trainer in named:
            say_late(self._plan.run, f"{_who(trainer)} {_silent(deadlines.SILENT_S)}. The job waits for it.")
        return named


class DepartureWatch:
    """Detects that a trainer has left while the others wait for it, for example in a collective: a deadlock.

    Used in jobs that train on what loaders read; in others a trainer that leaves ends the stream.

    Parameters
    ----------
    has_stream : bool
        Whether the job has a stream: epochs then need not be completed.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, has_stream: bool = False) -> None:
        self._has_stream = has_stream
        self._waits_s: dict[int, float] = {}
        self._early: dict[int, int] = {}  # batches of trainers that left in the middle of an epoch
        self._left: list[int] = []
        self._untrained: set[int] = set()

    def reported(self, trainer: int, values: Iterable[tuple[str, int, float]]) -> None:
        """Process a trainer's report: for each value its name, batch and value."""
        for name, _, value in values:
            if name == WAITS_S:
                self._waits_s[trainer] = value
            elif name == LEFT_EARLY:
                self._early[trainer] = int(value)
            elif name == UNTRAINED:
                self._untrained.add(trainer)

    def left(self, trainer: int) -> None:
        """Note that a trainer has left."""
        self._left.append(trainer)

    @property
    def in_order(self) -> int:
        """Number of trainers that have left; without a stream, except those that did so in the middle of an epoch."""
        return len(set(self._left).difference(() if self._has_stream else self._early))

    def how(self, trainer: int) -> str:
        """Return how a trainer has left: "in the middle of an epoch, after 3 batches"; "" if in order."""
        return f"in the middle of an epoch, after {self._early[trainer]} batches" if trainer in self._early else ""

    def leaves_rows(self, trainer: int) -> bool:
        """Whether no other trainer takes over the rows that a trainer has left."""
        return trainer in self._untrained

    def reason(self, remaining: Sequence[int]) -> str:
        """Return why to stop the job, if all remaining trainers wait for one that has left; else ""."""
        if not remaining or not self._left:
            return ""
        waited_s = min(self._waits_s.get(trainer, 0.0) for trainer in remaining)
        early = [trainer for trainer in self._left if trainer in self._early]
        if waited_s < (deadlines.LEFT_EARLY_S if early else deadlines.SILENT_S):
            return ""
        trainer = (early or self._left)[0]
        return f"trainer {trainer} left the job {self.how(trainer) or 'before the others'}".rstrip()


class FirstCause:
    """Finds out why trainers failed, from MPI, their reports, and the exit notes of their mpidata-ranks.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    silence : SilenceWatch
        Detects trainers that give no sign of life.

    Attributes
    ----------
    dead : int
        Rank of the first trainer or server whose death MPI has reported; -1 before.

    Notes
    -----
    Not thread-safe. Times are in seconds of a monotonic clock.
    """

    def __init__(self, plan: Plan, silence: SilenceWatch) -> None:
        self.dead = -1
        self._plan = plan
        self._silence = silence
        self._by = 0.0
        self._report: tuple[int, str] | None = None
        self._left: dict[int, str] = {}
        self._lost: set[int] = set()
        self._few = ""

    @property
    def known(self) -> bool:
        """Whether a trainer or server has died, or a script has failed."""
        return self.dead >= 0 or self._report is not None

    def lost(self, trainer: int) -> None:
        """Note that a trainer has died, which does not end the job."""
        self._lost.add(trainer)

    def left(self, trainer: int, how: str) -> None:
        """Note that a trainer has left while others may wait for it; how: e.g. "the script ended after batch 3"."""
        self._left.setdefault(trainer, how)

    def died(self, rank: int, now: float, few: str = "") -> None:
        """Note that a trainer or server has died, as MPI reports; `few`: why the others cannot continue."""
        if self.dead < 0:
            self.dead, self._by, self._few = rank, now + deadlines.WHY_TRAINER_DIED_S, few

    def reported(self, trainer: int, text: str, now: float) -> None:
        """Keep the report of a trainer whose script has failed; the first one counts."""
        if self._report is None:
            self._report = trainer, text
            self._by = now if self._plan.trainers == 1 else max(self._by, now + deadlines.WHY_TRAINER_FAILED_S)

    def verdict(self, now: float, final: bool = False) -> Verdict | None:
        """Return the first cause, once it is known or no longer waited for; None before, or if nothing has failed.

        `final`: there is no time to wait.
        """
        if not self.known:
            return None
        reporter, text = self._report or (-1, "")
        then = f" Trainer {reporter} then failed: {text}." if self._report else ""
        follows = _LOST_PEER.search(text) is not None
        others = [one for one in range(self._plan.trainers) if one != reporter and (follows or one not in self._lost)]
        ranks = [*(1 + one for one in others), *self._plan.scripts[self._plan.trainers :], *self._plan.server_ranks]
        found = self._first_death(ranks) or self._vanished(ranks)
        if found is not None or (now < self._by and not final):
            return found
        return self._dead() or self._silent(others, now, then) or self._left_before(text, then) or self._own()

    def _dead(self) -> Verdict | None:
        if self.dead < 0:
            return None
        ended = read_exit_note(self._run.rank_exit(self.dead))
        how, died = (VANISHED, True) if ended is None else (ended.sentence(), _has_died(ended))
        return self._of(self.dead, how, died=died)

    def _silent(self, trainers: Iterable[int], now: float, then: str) -> Verdict | None:
        for trainer in trainers:
            if silent_s := self._silence.since(trainer, now):
                return self._of(1 + trainer, _silent(silent_s), then, died=True)
        return None

    def _left_before(self, text: str, then: str) -> Verdict | None:
        """Blame a trainer that has left if another one reports lost connections."""
        reporter = self._report[0] if self._report else -1
        left = [(trainer, how) for trainer, how in self._left.items() if trainer != reporter]
        if not left or _LOST_PEER.search(text) is None:
            return None
        trainer, how = left[0]
        return self._of(1 + trainer, f"left before the others ({how})", then)

    def _own(self) -> Verdict | None:
        """Return the report itself, because no other cause is known."""
        if self._report is None:
            return None
        reporter, text = self._report
        log = self._log(1 + reporter)
        return Verdict(
            f"{text}. The script of trainer {reporter} failed; {log} has the full output.", log, by_script=True
        )

    def _first_death(self, ranks: Iterable[int]) -> Verdict | None:
        """Find the first of these that ended abnormally without having been told to end."""
        found = [(rank, read_exit_note(self._run.rank_exit(rank))) for rank in ranks]
        own = [(ended.at, rank, ended) for rank, ended in found if ended is not None and not ended.told]
        if not own:
            return None
        _, rank, ended = min(own, key=lambda entry: entry[0])
        return self._of(rank, ended.sentence(), died=_has_died(ended))

    def _vanished(self, ranks: Iterable[int]) -> Verdict | None:
        for rank in ranks:
            if has_vanished(self._run, self._run.rank_exit(rank).name):
                return self._of(rank, VANISHED, died=True)
        return None

    def _of(self, rank: int, how: str, then: str = "", died: bool = False) -> Verdict:
        log = self._log(rank)
        few, resume = "", f"Resume the job with `mpidata run --resume {self._plan.run}`."
        if self._few and rank <= self._plan.trainers:
            few = f", and {self._few}"
            resume = resume if self._has_checkpoint else "There is no checkpoint to resume from: start the job again."
        see = f"Its output is in {log}. {resume}"
        return Verdict(f"{self._plan.name_of(rank)} {how}{few}.{then} {see}", log, died)

    @property
    def _has_checkpoint(self) -> bool:
        try:
            return bool(numbers(self._run.checkpoints))
        except MpidataError:  # the resume will report it
            return True

    @property
    def _run(self) -> RunFolder:
        return RunFolder(self._plan.run)

    def _log(self, rank: int) -> Path:
        return PlannedRun(self._run, self._plan).log(rank)


def _has_died(ended: Exit) -> bool:
    return ended.cause in ("signal", "silent")


def _who(trainer: int) -> str:
    return f"Trainer {trainer} (rank {1 + trainer})"


def _silent(seconds: float) -> str:
    return f"has given no sign of life for {seconds:.0f} s: it was stopped by a signal, or its host hangs"
