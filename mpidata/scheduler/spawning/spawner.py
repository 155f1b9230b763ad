"""Groups and loaders that are started while the job runs, each by MPI_Comm_spawn in a thread of its own."""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpidata.errors import LibraryError, MpidataError, RankDiedError
from mpidata.mpi.mpi_name import OPEN_MPI
from mpidata.native import constants
from mpidata.native.build_flags import rank_program
from mpidata.native.library import Library, check
from mpidata.native.linked_mpi import linked_mpi
from mpidata.run import deadlines
from mpidata.run.exits import Exit, first_exit, has_vanished, read_exit_note
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.run.side_channel import say_late
from mpidata.scheduler.spawning.answers import Answers
from mpidata.scheduler.spawning.cases import Cases

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Spawner", "kind_of", "role_of"]


def role_of(kind: str) -> int:
    """Return the role in C of a `group`, a `loader`, an `inference` rank or a `learner`."""
    return _roles()[kind]


def kind_of(role: int) -> str:
    """Return the kind of a role in C, as `role_of` takes it."""
    return next(kind for kind, number in _roles().items() if number == role)


def _roles() -> dict[str, int]:
    others = {"loader": constants.ROLE_LOADER, "inference": constants.ROLE_INFERENCE, "learner": constants.ROLE_LEARNER}
    return {"group": constants.ROLE_SOLVER} | others


class _Start:
    """A group or loader that joins the job; its thread sets what the scheduler reads.

    It is `greeted` when its thread has spawned it. In its turn all trainers are asked whether they are `ready`, then it
    is `called`, so that no rank waits in MPI for one that hangs or is dead. When it `answers`, it is `invited`. If
    trainers continue after a death, they are asked after it has answered: their scripts may have to wait from then on.
    """

    def __init__(self, group: int, kind: str, trainers: Answers) -> None:
        self.group = group
        self.kind = kind
        self.since = math.inf
        self.greeted = threading.Event()
        self.trainers = trainers
        self.asked = False  # whether the trainers were asked, and were not dismissed since
        self.called = threading.Event()
        self.answers = threading.Event()
        self.invited = threading.Event()
        self.joined = threading.Event()
        self.error = ""
        self.asked_at = 0.0
        self.said = False
        self.bridge = ctypes.c_int()
        self.comm = ctypes.c_int()


class Spawner:
    """Starts groups and loaders and lets them join, one after the other, without blocking the scheduler.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    library : Library
        The library, opened as the scheduler.

    Notes
    -----
    For the scheduler's thread only. Needs MPI_THREAD_MULTIPLE.
    """

    def __init__(self, plan: Plan, library: Library) -> None:
        self._plan = plan
        self._library = library
        self._starts: dict[tuple[str, int], _Start] = {}
        self._joining: _Start | None = None
        self._trainers_may_die = plan.trainers_at_least > 0
        self._may_invite: dict[str, bool] = {}
        self._cases = Cases(plan)
        # MPICH mixes up two groups that are spawned at the same time. Open MPI does not, and there a spawn that hangs
        # must not block the others.
        linked = linked_mpi()
        self._concurrent = linked is None or linked.name == OPEN_MPI
        self._one_at_a_time = threading.Lock()

    def start(self, group: int, values: Sequence[str], kind: str = "group") -> None:
        """Begin to spawn a group, whose program's placeholders get these values, each `name=value`; or a `loader`."""
        from mpi4py import MPI

        begun = self._starts[kind, group] = _Start(group, kind, Answers(self._plan.trainers, self._lives))
        info = MPI.Info.Create()
        if self._concurrent:
            info.Set("map_by", ":OVERSUBSCRIBE")
            info.Set("bind_to", "none")
        if self._plan.hosts and kind == "group":
            info.Set("host", ",".join(self._plan.hosts))
        command = [str(self._plan.run), f"--{kind}", str(group), *values]
        threading.Thread(target=self._bring, args=(begun, command, info, values), daemon=True).start()

    def lose(self, group: int) -> None:
        """Remove the folder of a lost group, in its own thread, because this may take long."""
        threading.Thread(target=self._cases.end, args=(group,), daemon=True).start()

    def gone(self, group: int) -> None:
        """Note that a group has left the job."""
        self._cases.forget(group)

    def close(self) -> None:
        """Remove the files of groups that could not be started or were just lost; blocks."""
        self._cases.clear()

    @property
    def busy(self) -> bool:
        """Whether a group or loader is joining the job."""
        return bool(self._starts)

    @property
    def joining(self) -> bool:
        """Whether the trainers are just joining one; they must not be interrupted then."""
        joining = self._joining
        return joining is not None and joining.invited.is_set() and not self._is_settled(joining)

    def ready(self, trainer: int, group: int, kind: str, answer: int) -> None:
        """Process a trainer's answer about this group or loader: at once, because scripts wait meanwhile."""
        if (start := self._starts.get((kind, group))) is None:
            return
        start.trainers.take(trainer, answer)
        if self._trainers_may_die and start.asked and not start.invited.is_set():
            self._invite_or_dismiss(start)

    def news(self, invite: bool, kind: str = "group") -> list[tuple[int, str]]:
        """Return the groups or loaders that have joined, with "", and those that could not be started, with a sentence.

        Parameters
        ----------
        invite : bool
            Whether ready ones may join, because the job has work for them.
        kind : str
            `group` or `loader`.

        Raises
        ------
        RankDiedError
            One died just when the trainers joined it, which may block them.
        """
        now = time.monotonic()
        found: list[tuple[int, str]] = []
        self._may_invite[kind] = invite
        for start in [start for start in self._starts.values() if start.kind == kind]:
            if start.invited.is_set() and self._is_settled(start) and (error := self._not_joined(start)):
                self._dismiss(start)
                found.append((start.group, error))
            elif start.joined.is_set() and not start.error and self._is_settled(start):
                check(self._library, self._library.mpidata_scheduler_link(role_of(kind), start.group, start.comm))
                found.append((start.group, ""))
            elif not start.invited.is_set() and (error := self._failure(start, now)):
                found.append((start.group, error))
        for group, _ in found:
            start = self._starts.pop((kind, group))
            if start.asked and not start.invited.is_set():
                self._dismiss(start)
        self._let_join(now, invite, kind)
        return found

    def _let_join(self, now: float, invite: bool, kind: str) -> None:
        """Let the next one join: all trainers must join in the same order, so only one at a time."""
        joining = self._joining
        if joining is not None and joining.invited.is_set():
            self._look_after(joining, now)
        if (
            joining is None
            or (joining.joined.is_set() and self._is_settled(joining))
            or (joining.kind, joining.group) not in self._starts
        ):
            waiting = [s for s in self._starts.values() if s.kind == kind and not s.invited.is_set()]
            ready = [start for start in waiting if start.greeted.is_set() and not start.error]
            joining = self._joining = ready[0] if ready and invite else None
            if joining is not None:
                joining.since = now
                if self._trainers_may_die:
                    joining.called.set()
                else:
                    self._ask(joining)
        elif joining.kind != kind or joining.invited.is_set():
            return
        elif self._trainers_may_die and joining.answers.is_set() and not joining.error:
            self._ask_again(joining, now)
        elif not joining.called.is_set() and joining.trainers.all_say(constants.ANSWER_READY):
            joining.since = now
            joining.called.set()
        elif joining.answers.is_set() and invite and not joining.error:
            self._invite(joining)
        else:
            self._say_if_late(joining, now)

    def _ask(self, start: _Start) -> None:
        start.trainers.ask()
        start.asked, start.asked_at = True, time.monotonic()
        check(self._library, self._library.mpidata_scheduler_prepare(role_of(start.kind), start.group))

    def _invite(self, start: _Start) -> None:
        start.since = time.monotonic()
        if self._trainers_may_die:
            start.trainers.ask()
        check(self._library, self._library.mpidata_scheduler_invite(role_of(start.kind), start.group))
        start.invited.set()

    def _dismiss(self, start: _Start) -> None:
        start.asked = False
        check(self._library, self._library.mpidata_scheduler_dismiss(role_of(start.kind), start.group))

    def _ask_again(self, start: _Start, now: float) -> None:
        """Ask the trainers; again if one was busy or did not answer, as the others must not wait for it."""
        invite = self._may_invite[start.kind]
        if start.asked and invite and start.trainers.all_say(constants.ANSWER_READY):  # the late trainer has died
            self._invite_or_dismiss(start)
        elif start.asked and (not invite or now - start.asked_at > deadlines.TRAINERS_ANSWER_S):
            self._dismiss(start)
        elif not start.asked and invite and not start.trainers.missing:
            start.since = now
            self._ask(start)
        else:
            self._say_if_late(start, now)

    def _invite_or_dismiss(self, start: _Start) -> None:
        if start.trainers.any_says(constants.ANSWER_BUSY) or not self._may_invite[start.kind]:
            self._dismiss(start)
        elif start.trainers.all_say(constants.ANSWER_READY) and not self._failure(start, time.monotonic()):
            self._invite(start)

    def _is_settled(self, start: _Start) -> bool:
        """Whether no rank is in the MPI call that joins it any more."""
        return start.joined.is_set() and not (
            self._trainers_may_die and start.invited.is_set() and start.trainers.missing
        )

    def _not_joined(self, start: _Start) -> str:
        """Return why an invited one has not joined, if no rank waits for it; "" if it has, or if the job ends."""
        if not self._trainers_may_die or (not start.error and start.trainers.all_say(constants.ANSWER_JOINED)):
            return ""
        ended = self._exit_of(start)
        if ended is not None:
            return (ended.error or f"Its program {ended.sentence()} while it joined the job").rstrip(".")
        return "A trainer died, or it died itself, while it joined the job"

    def _lives(self, trainer: int) -> bool:
        yes = ctypes.c_int()
        check(self._library, self._library.mpidata_scheduler_trainer_lives(trainer, ctypes.byref(yes)))
        return bool(yes.value)

    def _look_after(self, joining: _Start, now: float) -> None:
        """Raise RankDiedError if one died while it joined; one that is only stopped is waited for."""
        late = not self._is_settled(joining) and now - joining.since > deadlines.JOIN_GROUP_S
        lost = joining.trainers.lost if self._trainers_may_die else []
        gone = late and (
            bool(lost or joining.error)
            or self._exit_of(joining) is not None
            or self._is_gone(joining)
            or self._has_vanished(joining)
        )
        if gone or (joining.error and not self._trainers_may_die):
            who = f"Trainer {lost[0]}" if lost else f"The spawned {joining.kind} {joining.group}"
            what = f"the spawned {joining.kind} {joining.group}" if lost else "it"
            raise RankDiedError(
                f"{who} died while {what} joined the job "
                f"({joining.error or 'no answer'}), and the trainers may wait for it. Resume the job with "
                f"`mpidata run --resume {self._plan.run}`."
            )
        self._say_if_late(joining, now)

    def _has_vanished(self, joining: _Start) -> bool:
        """Whether MPI reports the death of one that has left no exit note."""
        yes = ctypes.c_int()
        check(self._library, self._library.mpidata_scheduler_has_died(joining.bridge, ctypes.byref(yes)))
        return bool(yes.value)

    def _say_if_late(self, joining: _Start, now: float) -> None:
        """Print once which rank keeps one from joining."""
        if joining.said or joining.joined.is_set() or now - joining.since < deadlines.SAY_JOIN_S:
            return
        joining.said = True
        late = joining.trainers.missing
        who = f"The spawned {joining.kind} {joining.group}"
        if late:
            who = f"Trainer{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
        elif joining.invited.is_set():
            who = f"A trainer or the spawned {joining.kind} {joining.group}"
        say_late(
            self._plan.run,
            f"{who} has not answered for {deadlines.SAY_JOIN_S:g} s, so that the spawned {joining.kind} "
            f"{joining.group} cannot join the job. Perhaps it was stopped (SIGSTOP), or its host hangs.",
        )

    def _failure(self, start: _Start, now: float) -> str:
        ended = self._exit_of(start)
        if ended is not None:
            return (ended.error or f"Its program {ended.sentence()} before it joined the job").rstrip(".")
        if self._is_gone(start):
            return "It was killed with its mpidata-rank before it joined the job, or its host is gone"
        if start.error or (start.greeted.is_set() and not (start.called.is_set() and not start.answers.is_set())):
            return start.error
        late = now - start.since > deadlines.SPAWN_S
        return f"It did not join the job within {deadlines.SPAWN_S:g} s" if late else ""

    def _exit_of(self, start: _Start) -> Exit | None:
        if start.kind != "group":
            return read_exit_note(PlannedRun(RunFolder(self._plan.run), self._plan).exit_of(start.kind, start.group))
        ended = first_exit(self._plan.run, self._plan, start.group)
        return None if ended is None else ended[1]

    def _is_gone(self, start: _Start) -> bool:
        """Whether one of its ranks is dead, and has left no exit note."""
        run, plan = RunFolder(self._plan.run), self._plan
        notes = [PlannedRun(run, plan).group_exit(start.group, rank) for rank in range(plan.ranks_per_group)]
        if start.kind != "group":
            notes = [PlannedRun(run, plan).exit_of(start.kind, start.group)]
        return any(has_vanished(run, note.name) for note in notes)

    def _bring(self, start: _Start, command: list[str], info: MPI.Info, values: Sequence[str]) -> None:
        """Spawn, greet and join a group; the body of its thread."""
        from mpi4py import MPI

        try:
            if start.kind == "group":
                self._cases.make(start.group, values)
            with self._turn():
                start.since = time.monotonic()
                self._spawn_and_join(start, command, info)
        except MPI.Exception as error:
            start.error = (
                f"MPI cannot spawn it: {_reason(error)}. Are there enough slots, and can this MPI spawn at all? "
                "`mpidata doctor` tries it"
            )
        except MpidataError as error:
            start.error = str(error).rstrip(".")
        except Exception as error:
            start.error = f"The scheduler cannot spawn it: {type(error).__name__}: {error}"
        start.joined.set()

    def _spawn_and_join(self, start: _Start, command: list[str], info: MPI.Info) -> None:
        from mpi4py import MPI

        ranks = self._plan.ranks_per_group if start.kind == "group" else 1
        between = MPI.COMM_SELF.Spawn(str(rank_program()), command, maxprocs=ranks, info=info)
        bridge, role = start.bridge, role_of(start.kind)
        greeted = self._library.mpidata_scheduler_greet(between.py2f(), role, start.group, ctypes.byref(bridge))
        check(self._library, greeted)
        start.greeted.set()
        start.called.wait()
        check(self._library, self._library.mpidata_scheduler_call(bridge))
        start.answers.set()
        start.invited.wait()
        check(self._library, self._library.mpidata_scheduler_join(bridge, ctypes.byref(start.comm)))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if self._concurrent:
            yield
        elif self._one_at_a_time.acquire(timeout=deadlines.SPAWN_S):
            try:
                yield
            finally:
                self._one_at_a_time.release()
        else:
            raise LibraryError(f"Another group has not joined the job within {deadlines.SPAWN_S:g} s")


def _reason(error: BaseException) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
