"""What was lost and why, what was retried, and what was set aside."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mpidata.run import deadlines
from mpidata.run.exits import last_lines, read_exit, read_exit_note, tail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.sampling.parameters_file import named

__all__ = ["GIVEN_UP", "VANISHED", "Cause", "Causes", "Losses", "UnreportedDeaths"]

_LOOK_S = 1.0
# If this many have failed, none is complete, and every group has failed, the program is at fault, not a simulation.
_HOPELESS = 3
VANISHED = (
    "vanished without an exit note: its mpidata-rank was killed with it, its host is gone, or the run folder cannot be "
    "written"
)
"""How a rank ended if no exit note exists; a predicate to follow its name."""

_Entries = Sequence[Mapping[str, Any]]

GIVEN_UP = "given_up"
"""Kind of the cause if the solver's own code abandoned a simulation, for example because it diverged."""


class Cause:
    """Why a try of a simulation failed.

    Parameters
    ----------
    kind : str
        `signal`, `exit`, `abort`, `raised`, `silent`, `not_started`, `given_up` or `unknown`.
    sentence : str
        Without a subject, for example "was killed by SIGSEGV".
    rank_in_group : int or None
        The rank of the group that failed, if known.
    signal, status : int or None
        Of the program that died.
    output : list of str
        Its last lines.
    item : str or None
        What a loader worked on.
    """

    def __init__(
        self,
        kind: str,
        sentence: str,
        rank_in_group: int | None = None,
        signal: int | None = None,
        status: int | None = None,
        output: Sequence[str] = (),
        item: str | None = None,
    ) -> None:
        self.kind = kind
        self.sentence = sentence
        self.rank_in_group = rank_in_group
        self.signal = signal
        self.status = status
        self.output = list(output)
        self.item = item

    @classmethod
    def of_group(cls, plan: Plan, group: int, rank_in_group: int) -> Cause:
        """Find out why a group has lost a rank, from the exit notes of its ranks.

        Ranks that only followed, because they cannot continue without the others, do not count.
        """
        others = [rank for rank in range(plan.ranks_per_group) if rank != rank_in_group]
        found = [(read_exit(plan.run, plan, group, rank), rank) for rank in (rank_in_group, *others)]
        known = [(ended, rank) for ended, rank in found if ended is not None and not ended.told]
        for ended, rank in sorted(known, key=lambda entry: entry[0].follows):
            output = last_lines(plan.run, plan, group, rank)
            return cls(ended.cause, ended.sentence(), rank, ended.signal, ended.status, output)
        return cls("unknown", VANISHED, rank_in_group, output=last_lines(plan.run, plan, group, rank_in_group))

    @classmethod
    def of_one(cls, plan: Plan, kind: str, number: int) -> Cause:
        """Find out why a `loader`, an `inference` rank or a `learner` was lost, from its exit note."""
        run = PlannedRun(RunFolder(plan.run), plan)
        ended, output = read_exit_note(run.exit_of(kind, number)), tail(run.log_of(kind, number), 10)
        if ended is None or ended.told:
            return cls("unknown", VANISHED, 0, output=output)
        return cls(ended.cause, ended.sentence(), 0, ended.signal, ended.status, output, ended.item)

    @classmethod
    def given_up(cls, plan: Plan, group: int, reason: str) -> Cause:
        """Return the cause of a simulation that its code abandoned, with the last output of the group's rank 0."""
        return cls(GIVEN_UP, f"gave it up: {reason}", 0, output=last_lines(plan.run, plan, group, 0))

    @classmethod
    def raised(cls, plan: Plan, group: int, sentence: str) -> Cause:
        """Return the cause of a try whose function raised in a group that lives on, e.g. `raised ValueError`."""
        return cls("raised", sentence, 0, output=last_lines(plan.run, plan, group, 0))

    @classmethod
    def left(cls, plan: Plan, group: int) -> Cause:
        """Return the cause of a try whose group, started for it, left in order without requesting it."""
        return cls("exit", "left without requesting it", 0, status=0, output=last_lines(plan.run, plan, group, 0))

    def told(self) -> dict[str, Any]:
        """Return the cause's entries for events.jsonl and the summary."""
        return {"cause": self.kind, "how": self.sentence, "signal": self.signal, "exit": self.status}


class Losses:
    """Counts what was lost, and decides when a job must fail.

    Parameters
    ----------
    plan : Plan
        The job's plan.

    Attributes
    ----------
    retries : list of dict
        A try that failed and was followed by another: simulation, try, group and cause.
    set_aside : list of dict
        Simulations that are not tried again: simulation, parameters, tries, cause, last output.
    groups : int
        Groups that were lost.
    """

    def __init__(self, plan: Plan) -> None:
        self.retries: list[dict[str, Any]] = []
        self.set_aside: list[dict[str, Any]] = []
        self.groups = 0
        self._plan = plan
        self._kept = self._kept_retries = 0

    def keep(self, set_aside: _Entries = (), retries: _Entries = (), lost_groups: int = 0) -> None:
        """Restore the entries that earlier starts of the run have left."""
        self.set_aside, self.retries = [dict(entry) for entry in set_aside], [dict(entry) for entry in retries]
        self.groups = lost_groups
        self._kept, self._kept_retries = len(self.set_aside), len(self.retries)

    def retry(self, simulation: int, tries: int, group: int, cause: Cause) -> dict[str, Any]:
        """Note that a try has failed and another one follows; returns the entry."""
        entry = {"simulation": simulation, "try": tries, "group": group, **cause.told()}
        self.retries.append(entry)
        return entry

    def give_up(self, simulation: int, tries: int, group: int, cause: Cause, values: Sequence[float]) -> dict[str, Any]:
        """Note that a simulation is not tried again; returns the entry."""
        parameters = named(self._plan.told, values, self._plan.texts)
        entry = {"simulation": simulation, "parameters": parameters, "tries": tries, "group": group, **cause.told()}
        entry["output"] = cause.output
        self.set_aside.append(entry)
        return entry

    def verdict(self, ended: int) -> str:
        """Return a sentence why the job must fail, or "" while it need not.

        Parameters
        ----------
        ended : int
            Number of simulations that have run to their end, whether or not the trainers hold them yet.
        """
        count, tolerate = len(self.set_aside), self._plan.tolerate
        total = self._plan.simulations + self._plan.validation
        many = f"{count} simulation{'s were' if count > 1 else ' was'} set aside"
        failed = sum(entry["cause"] != GIVEN_UP for entry in self.set_aside[self._kept :])
        if not count:
            return ""
        if tolerate >= 0 and count > tolerate:
            return f"{many}, more than solvers.tolerate, {tolerate}. {self._last()}"
        in_this_start = self.set_aside[self._kept :] + self.retries[self._kept_retries :]
        everywhere = len({entry["group"] for entry in in_this_start}) >= self._plan.groups
        if tolerate < 0 and not ended and ((failed >= _HOPELESS and everywhere) or count >= total):
            return f"{many}, and none is complete. {self._last()}"
        return ""

    def _last(self) -> str:
        entry = self.set_aside[-1]
        return (
            f"The last one was simulation {entry['simulation']}, whose solver (group {entry['group']}) {entry['how']}. "
            f"Its output is in summary.json and in {self._plan.run}/logs. Fix the cause, then run all of them again "
            f"with `mpidata run --resume {self._plan.run} --retry-set-aside`."
        )


class Causes:
    """Finds out why groups or loaders were lost.

    MPI may report a death before the rank's mpidata-rank has written how its program ended.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    kind : str
        `group`, `loader`, `inference` or `learner`.
    """

    def __init__(self, plan: Plan, kind: str = "group") -> None:
        self._plan = plan
        self._kind = kind
        self._lost: dict[int, tuple[int, float]] = {}  # rank in group that died, when to stop waiting

    def look_for(self, group: int, rank_in_group: int, now: float) -> None:
        """Start to look for the cause of death of this rank of a group."""
        self._lost[group] = (rank_in_group, now + deadlines.WHY_LOST_S)

    def found(self, now: float) -> list[tuple[int, Cause]]:
        """Return each group or loader once, with its cause: when that is known, or no longer waited for."""
        causes = []
        for group, (rank_in_group, deadline) in list(self._lost.items()):
            if self._kind == "group":
                cause = Cause.of_group(self._plan, group, rank_in_group)
            else:
                cause = Cause.of_one(self._plan, self._kind, group)
            if cause.kind == "unknown" and now < deadline:
                continue
            del self._lost[group]
            if cause.kind == "unknown":  # every mpidata-rank checks there whether a rank has died
                with contextlib.suppress(OSError):
                    RunFolder(self._plan.run).vanished(group, self._kind).touch()
            causes.append((group, cause))
        return causes


class UnreportedDeaths:
    """Deaths of solvers or loaders that MPI does not report, which happens if one dies while another group joins.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    kind : str
        `group`, `loader`, `inference` or `learner`.
    """

    def __init__(self, plan: Plan, kind: str = "group") -> None:
        self._plan = plan
        self._kind = kind
        self._since: dict[int, float] = {}  # by group: when its exit note was first seen
        self._next_look = 0.0

    def find(self, now: float, is_alive: Callable[[int], bool]) -> list[tuple[int, int]]:
        """Find the groups that count as alive although a rank has left an exit note; each with that rank."""
        if self._plan.fault_tolerance != "ulfm" or now < self._next_look:
            return []
        self._next_look = now + _LOOK_S
        found: dict[int, int] = {}
        with contextlib.suppress(OSError):
            for name in os.listdir(RunFolder(self._plan.run).exits):
                group, rank = self._rank_of(name)
                if group >= 0 and is_alive(group):
                    found.setdefault(group, rank)
        return [(g, rank) for g, rank in found.items() if now - self._since.setdefault(g, now) >= deadlines.MPI_TELLS_S]

    def _rank_of(self, name: str) -> tuple[int, int]:
        """Return the group or loader, and its rank, that wrote an exit note; -1 if it is of another kind."""
        if spawned := re.fullmatch(rf"{self._kind}-(\d+)(?:-(\d+))?", name):
            return int(spawned[1]), int(spawned[2] or 0)
        if (world := re.fullmatch(r"rank-(\d+)", name)) and int(world[1]) < self._plan.world:
            role, number, rank_in_group = self._plan.role_of(int(world[1]))
            if role == ("solver" if self._kind == "group" else self._kind):
                return number, rank_in_group
        return -1, 0
