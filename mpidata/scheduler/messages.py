"""The scheduler's messages: what it receives from the groups, loaders and trainers, and what it sends them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import MpidataError
from mpidata.native import structures
from mpidata.native.event import Event, read
from mpidata.native.library import Library, check
from mpidata.native.loading import load_checked
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.spawning.spawner import Spawner, kind_of, role_of

__all__ = ["MIXED", "LibraryMessages", "Messages", "index_of", "kind_of", "log_of"]

MIXED = "The ranks do not agree on the job: start all of them with the same version of mpidata, or report this."
"""What to do about an impossible message."""
_AT_ONCE = 64  # events


class Messages(Protocol):
    """How the scheduler communicates with the other ranks; the functions of scheduler.h without their prefix."""

    def poll(self, timeout_s: float) -> Sequence[Event]:
        """Return the next events, or none if none arrive in time. Sleeps while it waits."""

    def dispatch(
        self, group: int, simulation: int, by_try: int, validation: bool, parameters: NDArray[np.float64]
    ) -> None:
        """Let a group run this try of a simulation, parameters: float64, shape (number of parameters,), contiguous."""

    def no_more(self, group: int) -> None:
        """Tell a group that there are no more simulations."""

    def expect(self, simulation: int, steps: int, by_try: int) -> None:
        """Tell all trainers how many steps a simulation has, as this try reported."""

    def cancel(self, simulation: int, group: int, closed: bool = False) -> None:
        """Tell all trainers that a simulation is cancelled; `group` runs it (-1: none), or has `closed` it."""

    def cancel_group(self, group: int, simulation: int, by_try: int) -> None:
        """Tell a group that this try of a simulation is cancelled, if that is what it runs."""

    def validation(self) -> None:
        """Tell all trainers that all validation samples have arrived."""

    def lose(self, group: int, kind: str = "group", item: str = "") -> None:
        """Declare a group or `loader` lost: its ranks are to end, and the trainers to drop what it has not finished.

        `item`: what a loader worked on, if known.
        """

    def lose_trainer(self, trainer: int) -> None:
        """Tell the other trainers, and the groups with each further task, that one has died and they continue."""

    def retire_trainer(self, trainer: int) -> None:
        """Tell them that a living trainer no longer trains."""

    def join_trainer(self, trainer: int) -> None:
        """Tell the trainers, and the groups with each further task, that a spare trains from now on."""

    def gone(self, group: int, kind: str = "group") -> None:
        """Close the connection to a spawned group or `loader` that has left."""

    def serves(self, loader: int) -> None:
        """Tell all trainers that a loader takes requests from now on."""

    def retires(self, loader: int) -> None:
        """Tell all trainers to send a loader no more requests: it leaves or asks when done with its last ones."""

    def rests(self, loader: int) -> None:
        """Tell all trainers that a retired loader has answered all requests; it may serve again."""

    def release(self, number: int, kind: str = "loader") -> None:
        """Tell a loader, an `inference` rank or a `learner` to leave."""

    def answers(self, inference: int) -> None:
        """Tell all solver ranks that an inference rank answers from now on."""

    @property
    def can_spawn(self) -> bool:
        """Whether groups can be spawned in this job."""

    @property
    def can_spawn_loaders(self) -> bool:
        """Whether loaders can be spawned in this job."""

    @property
    def can_spawn_inference(self) -> bool:
        """Whether inference ranks and learners can be spawned in this job."""

    def teaches(self, learner: int) -> None:
        """Have this learner run the sampler from now on."""

    def spawn(self, group: int, values: Sequence[str], kind: str = "group") -> None:
        """Begin to spawn a group whose program's placeholders get these values, each `name=value`; or a `loader`."""

    def spawned(self, invite: bool, kind: str = "group") -> list[tuple[int, str]]:
        """Return the groups that have joined, each with "", and those that could not be started, with a sentence.

        `invite`: groups that are ready may join. By `kind`, also for loaders.
        """

    def ready(self, trainer: int, group: int, kind: str, answer: int) -> None:
        """Process a trainer's answer about joining this group or `loader`: one of constants.ANSWER_*."""

    @property
    def joining(self) -> bool:
        """Whether the trainers are just joining a spawned group; they must not be interrupted then."""

    def end_of_stream(self) -> None:
        """Tell all trainers that no more samples will arrive."""

    def stop(self) -> None:
        """Tell all trainers and groups to leave."""

    def relieve(self, trainer: int, samples: int) -> None:
        """Let a trainer take `samples` samples beyond its capacity."""

    def hands_over(self, trainer: int) -> None:
        """Tell all trainers that this one draws nothing: its samples go to the others."""

    def trainers(self, number: int, count: int) -> None:
        """Tell all trainers how many are to train (0: none); `number`: of this order, greater than all before."""

    def checkpoint(self, number: int) -> None:
        """Tell all trainers to write a checkpoint of this number, greater than all before."""

    def all_gone(self) -> None:
        """Tell all trainers that every group and every trainer has left."""

    def abort(self, status: int) -> NoReturn:
        """End all ranks at once. Does not return."""

    def close(self) -> None:
        """Leave the job in order, after `all_gone`."""


class LibraryMessages:
    """Messages through libmpidata.

    Notes
    -----
    Not thread-safe. Only `open` and `poll` block. All methods raise LibraryError if MPI fails.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._events = (structures.RawEvent * _AT_ONCE)()
        self._each = list(self._events)  # indexing the array would take as long as reading an event
        self._came = ctypes.c_int()
        self._library: Library | None = None
        self._spawner: Spawner | None = None

    def open(self) -> None:
        """Initialise MPI and join the job, all ranks of which receive the plan.

        Raises
        ------
        LibraryError
            The library is missing or belongs to another MPI, or the world does not match the plan.

        Notes
        -----
        Collective over the world; blocks until all ranks have joined.
        """
        from mpi4py import MPI

        self._library = load_checked()
        self._check(self._library.mpidata_scheduler_open(MPI.COMM_WORLD.py2f(), self._plan.text().encode()))

    def poll(self, timeout_s: float) -> list[Event]:
        """Return the next events, or none if none arrive in time. Sleeps while it waits."""
        came = self._came
        self._check(self.library.mpidata_scheduler_poll(self._events, _AT_ONCE, timeout_s, came))
        return [_read(raw) for raw in self._each[: came.value]]

    def dispatch(
        self, group: int, simulation: int, by_try: int, validation: bool, parameters: NDArray[np.float64]
    ) -> None:
        """Let a group run a simulation with these parameters: float64, shape (number of parameters,), contiguous."""
        values = (ctypes.c_double * len(parameters)).from_buffer(parameters.data)
        self._check(self.library.mpidata_scheduler_dispatch(group, simulation, by_try, validation, values))

    def no_more(self, group: int) -> None:
        """Tell a group that there are no more simulations."""
        self._check(self.library.mpidata_scheduler_no_more(group))

    def expect(self, simulation: int, steps: int, by_try: int) -> None:
        """Tell all trainers how many steps a simulation has, as this try reported."""
        self._check(self.library.mpidata_scheduler_expect(simulation, steps, by_try))

    def cancel(self, simulation: int, group: int, closed: bool = False) -> None:
        """Tell all trainers that a simulation is cancelled; `group` runs it (-1: none), or has `closed` it."""
        self._check(self.library.mpidata_scheduler_cancel(simulation, group, closed))

    def cancel_group(self, group: int, simulation: int, by_try: int) -> None:
        """Tell a group that this try of a simulation is cancelled, if that is what it runs."""
        self._check(self.library.mpidata_scheduler_cancel_group(group, simulation, by_try))

    def validation(self) -> None:
        """Tell all trainers that all validation samples have arrived."""
        self._check(self.library.mpidata_scheduler_validation())

    def lose(self, group: int, kind: str = "group", item: str = "") -> None:
        """Declare a group or `loader` lost: its ranks are to end, and the trainers to drop what it has not finished.

        `item`: what a loader worked on, if known.
        """
        self._check(self.library.mpidata_scheduler_lose(role_of(kind), group, item.encode()))
        if self._spawner is not None and kind == "group":
            self._spawner.lose(group)

    def lose_trainer(self, trainer: int) -> None:
        """Tell the other trainers, and the groups with each further task, that one has died and they continue."""
        self._check(self.library.mpidata_scheduler_lose_trainer(trainer))

    def retire_trainer(self, trainer: int) -> None:
        """Tell them that a living trainer no longer trains."""
        self._check(self.library.mpidata_scheduler_retire_trainer(trainer))

    def join_trainer(self, trainer: int) -> None:
        """Tell the trainers, and the groups with each further task, that a spare trains from now on."""
        self._check(self.library.mpidata_scheduler_join_trainer(trainer))

    def gone(self, group: int, kind: str = "group") -> None:
        """Close the connection to a spawned group or `loader` that has left."""
        self._check(self.library.mpidata_scheduler_gone(role_of(kind), group))
        if self._spawner is not None and kind == "group":
            self._spawner.gone(group)

    def serves(self, loader: int) -> None:
        """Tell all trainers that a loader takes requests from now on."""
        self._check(self.library.mpidata_scheduler_serves(loader))

    def retires(self, loader: int) -> None:
        """Tell all trainers to send a loader no more requests: it leaves or asks when done with its last ones."""
        self._check(self.library.mpidata_scheduler_retires(loader))

    def rests(self, loader: int) -> None:
        """Tell all trainers that a retired loader has answered all requests; it may serve again."""
        self._check(self.library.mpidata_scheduler_rests(loader))

    def release(self, number: int, kind: str = "loader") -> None:
        """Tell a loader, an `inference` rank or a `learner` to leave."""
        self._check(self.library.mpidata_scheduler_release(role_of(kind), number))

    def answers(self, inference: int) -> None:
        """Tell all solver ranks that an inference rank answers from now on."""
        self._check(self.library.mpidata_scheduler_answers(inference))

    @property
    def can_spawn(self) -> bool:
        """Whether groups can be spawned in this job: in the spawn start, else with ULFM and on one host."""
        return self._can_spawn(self._plan.start)

    @property
    def can_spawn_loaders(self) -> bool:
        """Whether loaders can be spawned in this job, by the same rule."""
        return self._can_spawn(self._plan.loader_start)

    def teaches(self, learner: int) -> None:
        """Have this learner run the sampler from now on."""
        self._check(self.library.mpidata_scheduler_teaches(learner))

    @property
    def can_spawn_inference(self) -> bool:
        """Whether inference ranks and learners can be spawned in this job, by the same rule."""
        return self._can_spawn("split")

    def _can_spawn(self, start: str) -> bool:
        may_die = self._plan.trainers_at_least > 0
        return start == "spawn" or (not may_die and self._plan.fault_tolerance == "ulfm" and self.one_host)

    @property
    def one_host(self) -> bool:
        """Whether all ranks of the world are on one host."""
        yes = ctypes.c_int()
        self._check(self.library.mpidata_scheduler_one_host(ctypes.byref(yes)))
        return bool(yes.value)

    def spawn(self, group: int, values: Sequence[str], kind: str = "group") -> None:
        """Begin to spawn a group whose program's placeholders get these values, each `name=value`; or a `loader`."""
        if self._spawner is None:
            self._spawner = Spawner(self._plan, self.library)
        self._spawner.start(group, values, kind)

    def spawned(self, invite: bool, kind: str = "group") -> list[tuple[int, str]]:
        """Return the groups that have joined, each with "", and those that could not be started, with a sentence.

        `invite`: groups that are ready may join. By `kind`, also for loaders.
        """
        return self._spawner.news(invite, kind) if self._spawner is not None else []

    def ready(self, trainer: int, group: int, kind: str, answer: int) -> None:
        """Process a trainer's answer about joining this group or `loader`: one of constants.ANSWER_*."""
        if self._spawner is not None:
            self._spawner.ready(trainer, group, kind, answer)

    @property
    def joining(self) -> bool:
        """Whether the trainers are just joining a spawned group; they must not be interrupted then."""
        return self._spawner is not None and self._spawner.joining

    @property
    def spawning(self) -> bool:
        """Whether a group is joining the job: MPI must not be finalized then."""
        return self._spawner is not None and self._spawner.busy

    def end_of_stream(self) -> None:
        """Tell all trainers that no more samples will arrive."""
        self._check(self.library.mpidata_scheduler_end_of_stream())

    def stop(self) -> None:
        """Tell all trainers and groups to leave."""
        self._check(self.library.mpidata_scheduler_stop())

    def relieve(self, trainer: int, samples: int) -> None:
        """Let a trainer take `samples` samples beyond its capacity."""
        self._check(self.library.mpidata_scheduler_relieve(trainer, samples))

    def hands_over(self, trainer: int) -> None:
        """Tell all trainers that this one draws nothing: its samples go to the others."""
        self._check(self.library.mpidata_scheduler_hands_over(trainer))

    def trainers(self, number: int, count: int) -> None:
        """Tell all trainers how many are to train (0: none); `number`: of this order, greater than all before."""
        self._check(self.library.mpidata_scheduler_trainers(number, count))

    def checkpoint(self, number: int) -> None:
        """Tell all trainers to write a checkpoint of this number, greater than all before."""
        self._check(self.library.mpidata_scheduler_checkpoint(number))

    def all_gone(self) -> None:
        """Tell all trainers that every group and every trainer has left."""
        self._check(self.library.mpidata_scheduler_all_gone())

    def abort(self, status: int) -> NoReturn:
        """End all ranks at once. Does not return."""
        if self._library is not None:
            self._library.mpidata_scheduler_abort(status)
        os._exit(status)

    def close(self) -> None:
        """Leave the job in order, after `all_gone`."""
        if self._spawner is not None:
            self._spawner.close()
        self._check(self.library.mpidata_scheduler_close())

    @property
    def library(self) -> Library:
        """The library; only after `open`."""
        if self._library is None:
            raise RuntimeError("open was not called")
        return self._library

    def _check(self, status: int) -> None:
        check(self.library, status)


def _read(raw: structures.RawEvent) -> Event:
    try:
        return read(raw)
    except KeyError:
        raise MpidataError(f"Rank {raw.rank} sent a message of unknown kind {raw.kind}. {MIXED}") from None


def index_of(event: Event, count: int) -> int:
    """Return the event's trainer, less than `count`; raises MpidataError if there is no such trainer."""
    if not 0 <= event.index < count:
        raise MpidataError(f"Rank {event.rank} sent a message as number {event.index} of {count}. {MIXED}")
    return event.index


def log_of(event: Event, plan: Plan) -> Path:
    """Return the log of the rank that an event came from."""
    run = PlannedRun(RunFolder(plan.run), plan)
    kinds = {"loader": event.of_loader, "inference": event.of_inference, "learner": event.of_learner}
    for kind in (kind for kind, yes in kinds.items() if yes):
        return run.log_of(kind, event.index)
    if event.of_solver and event.index >= plan.groups_in_world:  # its ranks are numbered after those of the trainers
        return run.group_log(event.index, event.rank - 1 - plan.trainers)
    return run.log(event.rank)
