"""The loaders of a job: which take requests, what replaces a lost one, and when they may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpidata.errors import MpidataError
from mpidata.native.event import Closed
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.deaths.lost_groups import Cause, Causes, UnreportedDeaths
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.groups import Groups, Places
from mpidata.scheduler.messages import MIXED, Messages

__all__ = ["Loaders"]


class Loaders:
    """Manages the loaders of a job: groups of one rank whose work comes from the trainers.

    Parameters
    ----------
    plan : Plan
        The job's plan; it may have no loaders.
    messages : Messages
        Messages to and from the other ranks.
    output : RunOutput
        The run's output.

    Attributes
    ----------
    groups : Groups
        Which loaders exist; only this object changes it.
    error : str
        Why the job must fail, or "".
    log : Path or None
        The log that the error is about.
    died_out : bool
        Whether the only reason is that no loader is left, so that resuming the job may bring them back.
    leaving : bool
        Whether the trainers no longer need loaders.
    blameless : bool
        Set from outside: all ranks are being ended, so a loader that dies is no loss.

    Notes
    -----
    Not thread-safe.
    """

    kind = "loader"
    name = "loader"
    """In sentences."""

    def __init__(self, plan: Plan, messages: Messages, output: RunOutput) -> None:
        self._plan = plan
        self._messages = messages
        self._output = output
        self._any = self._places.groups > 0
        self.groups = Groups(self._places, self._any and self._can_spawn)
        self.error = ""
        self.log: Path | None = None
        self.died_out = False
        self.leaving = False
        self.blameless = False
        self._untold = UnreportedDeaths(plan, self.kind)
        self._causes = Causes(plan, self.kind)
        self._tries: dict[str, int] = {}  # by the item that lost loaders worked on
        self._serving: set[int] = set()
        self._served = 0
        if self._any:
            self._figures.update(joined=0, lost=0)

    @property
    def _places(self) -> Places:
        plan = self._plan
        return Places(plan.loaders, plan.loaders_in_world, plan.loader_start, "pool", plan.loader_retries)

    @property
    def _can_spawn(self) -> bool:
        return self._messages.can_spawn_loaders

    @property
    def _figures(self) -> dict[str, int]:
        return self._output.figures.loaders

    def _log_of(self, loader: int) -> Path:
        return PlannedRun(RunFolder(self._plan.run), self._plan).loader_log(loader)

    def tick(self, now: float) -> None:
        """Process loaders that were spawned, spawn those that are needed, and look into losses."""
        if not self._any:
            return
        for loader, _ in self._untold.find(now, self.groups.is_alive):
            self.died(loader, 0, now)
        self._look_into_losses(now)
        for loader, error in self._messages.spawned(not self.leaving, self.kind):
            if error:
                self._spawn_failed(loader, error, now)
                continue
            self.groups.spawned(loader)
            if self.leaving:
                self._messages.release(loader, self.kind)
        if not self.leaving and not self.error:
            for loader in self.groups.to_spawn(self.groups.wanted, now):
                self._note("spawn", loader)
                self._messages.spawn(loader, [], self.kind)

    def next(self, loader: int, event: Closed) -> None:
        """Process that a loader is ready for requests, or done with those it had; a spare waits for a place."""
        if not self._is_alive(loader):
            return
        if self.groups.rest(loader):
            self._serving.discard(loader)
            self._messages.rests(loader)
            self._note("rests", loader)
            self._promote()
            return
        self.groups.works(loader)
        self.groups.ask(loader)
        self._figures["joined"] += 1
        self._note(f"{self.kind}_joined", loader)
        self._serve()

    def finalized(self, loader: int, event: Closed) -> None:
        """Process that a loader leaves the job in order."""
        if not self._is_alive(loader):
            return
        self.groups.leave(loader)
        self._serving.discard(loader)
        self._messages.gone(loader, self.kind)
        self._note(f"{self.kind}_left", loader)
        self._promote()
        self._look_for_any(f"No {self.name} is left: the last one, {self.name} {loader}, has left.", loader)

    def died(self, loader: int, rank_in_group: int, now: float) -> None:
        """Declare a loader that has died lost; the trainers are informed when it is known what it worked on."""
        if not self.groups.is_alive(loader):
            return
        self.groups.lose(loader)
        self._serving.discard(loader)
        self._promote()
        self._causes.look_for(loader, rank_in_group, now)
        self._look_into_losses(now)

    def leave(self) -> None:
        """Let all loaders leave, because the trainers no longer need them."""
        if self.leaving:
            return
        self.leaving = True
        for loader in self.groups.alive:
            self._messages.release(loader, self.kind)

    def scale(self, count: int) -> str:
        """Set how many loaders are to work; returns a sentence, or raises MpidataError if that is impossible."""
        if not self._any:
            raise MpidataError("This job has no loaders: its job file has no key 'loaders'.")
        if self.leaving:
            raise MpidataError("This job is ending and no longer needs loaders.")
        if count < self.groups.wanted and self._served < self._plan.loaders:  # the trainers wait for that many
            raise MpidataError("The loaders of this job have not all joined yet. Try again when they have.")
        sentence = self.groups.scale(count, "loaders", "loaders")
        self._promote()
        return sentence

    def _look_into_losses(self, now: float) -> None:
        for loader, cause in self._causes.found(now):
            self._messages.lose(loader, self.kind, cause.item or "")
            if self.blameless:
                continue
            self._figures["lost"] += 1
            self._note(f"{self.kind}_lost", loader, **cause.told())
            self._blame(loader, cause)
            self._look_for_any(f"No {self.name} is left: the last one, {self.name} {loader}, {cause.sentence}.", loader)

    def _blame(self, loader: int, cause: Cause) -> None:
        """Count the tries of the item that a lost loader worked on; after the last one the trainers leave it out."""
        if not cause.item:
            return
        tries = self._tries[cause.item] = self._tries.get(cause.item, 0) + 1
        left_out = sum(tries > self._plan.loader_retries for tries in self._tries.values())
        if left_out > self._plan.loader_tolerate and not self.leaving:
            times = "1 loader was lost at" if tries == 1 else f"{tries} loaders were lost at"
            self._fail(f"{times} the same work. Loader {loader}, the last one, {cause.sentence}.", loader)

    def _look_for_any(self, sentence: str, loader: int) -> None:
        if not self.groups.any_left and not self.leaving:
            self._fail(sentence, loader, died_out=self.groups.any_joined)

    def _fail(self, sentence: str, loader: int, died_out: bool = False) -> None:
        if not self.error:
            self.log, self.died_out = self._log_of(loader), died_out
            resume = f"esume the job with `mpidata run --resume {self._plan.run}`."
            fix = f"R{resume}" if died_out else f"Fix the error and r{resume}"
            self.error = f"{sentence} Its output is in {self.log}. {fix}"

    def _spawn_failed(self, loader: int, error: str, now: float) -> None:
        RunFolder(self._plan.run).give_up(loader, self.kind)
        again = self.groups.spawn_failed(loader, now)
        self._note("spawn_failed", loader, error=error, again=again)
        which = f"{self.name.capitalize()} {loader}"
        self._look_for_any(f"{which} could not be started, and no {self.name} is left. {error}.", loader)

    def _promote(self) -> None:
        if self.leaving:
            return
        for loader in self.groups.promote():
            self._note("spare_takes_over", loader)
        self._serve()

    def _serve(self) -> None:
        for loader in self.groups.ready():
            self._tell_serves(loader)
            self._serving.add(loader)
            self._served += 1
        # Those that joined last have the least work to hand over.
        for loader in self.groups.retire(sorted(self._serving, reverse=True)):
            self._messages.retires(loader)

    def _is_alive(self, loader: int) -> bool:
        """Whether a loader is not lost: a message of a lost one may still arrive."""
        if not self.groups.is_alive(loader) and loader not in self.groups.lost:
            raise MpidataError(f"There is no {self.name} {loader}. {MIXED}")
        return loader not in self.groups.lost

    def _tell_serves(self, loader: int) -> None:
        self._messages.serves(loader)

    def _note(self, what: str, loader: int, **more: Any) -> None:
        self._output.note(what, **{self.kind: loader}, **more)
