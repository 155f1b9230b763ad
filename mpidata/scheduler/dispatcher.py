"""Which group runs which simulation, and what happens to a simulation whose group abandons it or is lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import MpidataError
from mpidata.native import constants
from mpidata.native.event import Closed
from mpidata.run.exits import first_exit
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.sampling.parameters_file import assignments
from mpidata.scheduler.cancel.cancellations import Cancelling
from mpidata.scheduler.deaths.lost_groups import Cause, Causes, Losses, UnreportedDeaths
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.groups import Groups
from mpidata.scheduler.messages import MIXED, Messages
from mpidata.scheduler.simulations import NONE, Simulations

__all__ = ["Dispatcher"]


class Dispatcher:
    """Assigns simulations to the groups that ask, retries those that failed, and replaces groups that are lost.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    parameters : ndarray, float64, C order, shape (simulations + validation, number of parameters)
        Row i belongs to simulation i; read when that is dispatched.
    messages : Messages
        To and from the other ranks.
    output : RunOutput
        The run's output.
    simulations, groups, losses : Simulations, Groups, Losses
        Their states, which only this object changes.

    Attributes
    ----------
    error : str
        Why the job must fail, or "".
    log : Path or None
        The log that the error is about, if any.
    died_out : bool
        Whether the only reason is that no group is left, so that resuming the job may bring them back.
    stopping : bool
        Set from outside: groups that ask are to leave.
    keeps_groups : bool
        Set from outside: groups wait after all is settled, because simulations run again if a trainer dies.
    cancelling : Cancelling
        Cancels simulations.
    blameless : bool
        Set from outside: all ranks are being ended, so a group that dies is no loss and its simulation has not failed.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(
        self,
        plan: Plan,
        parameters: NDArray[np.float64],
        messages: Messages,
        output: RunOutput,
        simulations: Simulations,
        groups: Groups,
        losses: Losses,
    ) -> None:
        self.error = ""
        self.log: Path | None = None
        self.died_out = self.stopping = self.blameless = False
        self.keeps_groups = plan.trainers_at_least > 0
        self._plan, self._parameters, self._messages = plan, parameters, messages
        self._output = output
        self._simulations = simulations
        self._groups = groups
        self._losses = losses
        self._not_started: tuple[str, Path | None] = "", None  # why the last group could not start, and its log
        self._untold = UnreportedDeaths(plan)
        self._causes = Causes(plan)
        self._leaving: set[int] = set()  # groups that have left, but whose samples may not have arrived yet
        self._reserved: set[int] = set()  # groups that were spawned for one simulation and have not asked for it yet
        self.cancelling = Cancelling(plan, messages, output, simulations, self._is_told)

    def tick(self, now: float) -> None:
        """Process groups that were spawned, and spawn those that are needed."""
        for group, rank_in_group in self._untold.find(now, self._groups.is_alive):
            self.died(group, rank_in_group, now)
        self._look_into_losses(now)
        self.cancelling.look()
        self._part()
        for group, error in self._messages.spawned(not (self.stopping or self._simulations.all_settled)):
            if error:
                self._spawn_failed(group, error, now)
            else:
                self._groups.spawned(group)
                self._output.note("group_joined", group=group)
                if self.stopping:
                    self._messages.stop()
        if not self.stopping and self._simulations.pending:
            self._spawn(now)

    def next(self, group: int, event: Closed) -> None:
        """Process a group's request for a simulation, with which it closes the one before."""
        if not self._is_alive(group):
            return
        self._groups.works(group)
        if group in self._reserved:
            self._reserved.discard(group)
            simulation = self._simulations.running[group]
            cancelled = self._simulations.is_cancelled(simulation)
            if cancelled:
                self._simulations.close(group, simulation, 0, failed=False)
            if self.stopping or cancelled:
                self._messages.no_more(group)
            else:
                self._dispatch(group, simulation)
            return
        self._close(group, event)
        if self._plan.lifetime == "simulation":  # it was started for one
            self._messages.no_more(group)
            return
        self._groups.ask(group)
        self.feed()

    def finalized(self, group: int, event: Closed) -> None:
        """Process that a group leaves the job in order."""
        if not self._is_alive(group):
            return
        if group in self._reserved:
            self._reserved.discard(group)
            if not self.stopping:
                simulation = self._simulations.running[group]
                self._close_failed(simulation, 0, group, Cause.left(self._plan, group), again=True)
        else:
            self._close(group, event)
        self._groups.leave(group)
        self._leaving.add(group)
        self._part()
        self._output.note("group_left", group=group)
        self._promote()
        self.feed()
        pending = self._simulations.pending
        if not pending or self._groups.any_left or self.stopping:
            return
        if self._groups.hopeless:
            self._die_out(*self._not_started)
        else:
            self.error = self.error or (
                f"All {self._plan.groups} groups have left, but {pending} of {self._simulations.count} simulations "
                "have not been run. If the solver leaves after one simulation, set solvers.groups to the number of "
                "simulations, or use `start: spawn`; if not, call next until it returns no more simulations."
            )

    def died(self, group: int, rank_in_group: int, now: float) -> None:
        """Declare a group lost because a rank died; samples of a group that has left may also be lost."""
        if not self._groups.is_alive(group) and not (group in self._leaving and self._simulations.is_awaited(group)):
            return
        self._leaving.discard(group)
        self._groups.lose(group)
        self._messages.lose(group)
        self._reserved.discard(group)
        self._promote()
        self._causes.look_for(group, rank_in_group, now)
        self._look_into_losses(now)

    def scale(self, count: int) -> str:
        """Set how many groups are to be active; returns a sentence, or raises MpidataError if that is impossible."""
        if self.stopping or self._simulations.all_settled:
            raise MpidataError("This job needs no groups: it has no solvers, all simulations have ended, or it ends.")
        sentence = self._groups.scale(count, "groups", "solvers")
        self._promote()
        self.feed()
        return sentence

    def _part(self) -> None:
        """Close the connections to groups that have left and whose samples the trainers all hold."""
        for group in [group for group in self._leaving if not self._simulations.is_awaited(group)]:
            self._leaving.discard(group)
            self._messages.gone(group)

    def _look_into_losses(self, now: float) -> None:
        """Return the simulations of lost groups to the queue when the cause is known."""
        for group, cause in self._causes.found(now):
            if self.blameless:
                continue
            self._losses.groups += 1
            self._output.note("group_lost", group=group, rank_in_group=cause.rank_in_group, **cause.told())
            if self.stopping:
                continue
            blamed, others = self._simulations.lose(group)
            if blamed != NONE:
                self._failed(blamed, group, cause)
            for simulation in others:
                self._output.write("run_again", simulation=simulation, group=group)
            self.feed()
            if self._simulations.pending and not self._groups.any_left:
                log = PlannedRun(RunFolder(self._plan.run), self._plan).group_log(group, cause.rank_in_group or 0)
                self._die_out(
                    f"No group is left: the last one, group {group}, {cause.sentence}. Its output is in {log}. "
                    f"Resume the job with `mpidata run --resume {self._plan.run}`.",
                    log,
                )

    def _die_out(self, error: str, log: Path | None, may_be_resumed: bool = True) -> None:
        """End the job because no group is left; if groups had joined before, resuming the job may help."""
        if not self.error:
            self.error, self.log, self.died_out = error, log, may_be_resumed

    def feed(self) -> None:
        """Assign pending simulations to the groups that wait; let them leave if no more can come."""
        if self.stopping or (self._simulations.all_settled and not self.keeps_groups):
            for group in self._groups.release():
                self._messages.no_more(group)
            return
        for group in self._groups.retire(self._groups.waiting):
            if self._groups.rest(group):
                self._output.note("rests", group=group)
            else:
                self._messages.no_more(group)
        if not self._simulations.pending:
            return
        for group in self._groups.ready():
            simulation = self._simulations.take(group)
            if simulation == NONE:
                self._groups.ask(group)
                return
            self._dispatch(group, simulation)

    def run_again(self) -> None:
        """Dispatch the simulations that run again because a trainer has died."""
        self.feed()
        if self._simulations.pending and not self._groups.any_left and not self.stopping:
            self.error = self.error or (
                "A trainer has died, and simulations are to run again, but all groups have left. With "
                "'trainers.elastic', the solvers must call next until it returns no more simulations."
            )

    def _is_alive(self, group: int) -> bool:
        """Whether a group is not lost: a message of a lost one may still arrive."""
        if not self._groups.is_alive(group) and group not in self._groups.lost:
            raise MpidataError(f"There is no group {group}. {MIXED}")
        return group not in self._groups.lost

    def _is_told(self, group: int) -> bool:
        """Whether a group is alive, and has received its simulation."""
        return self._groups.is_alive(group) and group not in self._reserved

    def _dispatch(self, group: int, simulation: int) -> None:
        known, row = self._simulations, self._parameters[simulation]
        self._messages.dispatch(group, simulation, known.tries(simulation), known.is_first(simulation), row)
        self._output.dispatched(simulation, group)

    def _promote(self) -> None:
        if not self.stopping and not self._simulations.all_settled:
            for group in self._groups.promote():
                self._output.note("spare_takes_over", group=group)

    def _close(self, group: int, event: Closed) -> None:
        """Process the simulation that the group has just ended, if any."""
        simulation, steps, failed = event.simulation, event.steps, event.failed
        self._output.ran(group, event)
        if self.stopping and failed != constants.GIVEN_UP:
            return  # interrupted: neither complete nor failed, and its number of steps is meaningless
        if simulation == NONE:
            self._simulations.check_runs(group, NONE)
            return
        if self._simulations.is_cancelled(simulation):
            self._simulations.close(group, simulation, steps, failed=False)
        elif failed:
            again = failed != constants.GIVEN_UP
            cause = (Cause.raised if again else Cause.given_up)(self._plan, group, event.text)
            self._close_failed(simulation, steps, group, cause, again)
        else:
            if self._simulations.close(group, simulation, steps, failed=False):
                self._messages.expect(simulation, steps, self._simulations.tries(simulation))
            else:
                self._output.write("run_again", simulation=simulation)
                self._output.figures.run_again += 1
            self._output.closed(simulation, steps)

    def _close_failed(self, simulation: int, steps: int, group: int, cause: Cause, again: bool) -> None:
        """Process a simulation that its group did not finish, although the group is alive."""
        last = self._simulations.close(group, simulation, steps, failed=True, again=again)
        if self._simulations.is_cancelled(simulation):
            return
        self._failed(simulation, group, cause)
        if last and not self.stopping:
            self._messages.expect(simulation, steps, self._simulations.tries(simulation))

    def _failed(self, simulation: int, group: int, cause: Cause) -> None:
        """Note that a try has failed: another one will follow, or the simulation is set aside."""
        tries = self._simulations.counted_tries(simulation)
        if not self._simulations.has_failed(simulation):
            self._output.note("retry", **self._losses.retry(simulation, tries, group, cause))
            return
        entry = self._losses.give_up(simulation, tries, group, cause, self._parameters[simulation].tolist())
        self._output.note("set_aside", **entry)
        self.error = self.error or self._losses.verdict(self._simulations.ended)

    def _waiting_undrawn(self) -> int:
        """Count pending simulations without parameters; some may have been cancelled before they were drawn."""
        queue = self._simulations.queue
        if not queue.undrawn:
            return 0
        cancelled = (simulation for simulation in self._simulations.cancelled if not queue.is_first(simulation))
        return queue.undrawn - sum(simulation >= queue.drawn for simulation in cancelled)

    def _spawn(self, now: float) -> None:
        one_each = self._plan.lifetime == "simulation"
        undrawn = self._waiting_undrawn() if one_each else 0
        pending = self._simulations.pending - undrawn
        if undrawn and not pending and self._groups.may_spawn:
            self._simulations.queue.starved = True
        for group in self._groups.to_spawn(pending, now):
            values: list[str] = []
            if one_each:
                simulation = self._simulations.take(group)
                self._reserved.add(group)
                row = self._parameters[simulation].tolist()
                values = assignments(self._plan.told, row, self._plan.whole, self._plan.texts)
                values += [f"simulation={simulation}", f"try={self._simulations.tries(simulation)}"]
            self._output.note("spawn", group=group)
            self._messages.spawn(group, values)

    def _spawn_failed(self, group: int, error: str, now: float) -> None:
        self._reserved.discard(group)
        self._simulations.give_back(group)
        RunFolder(self._plan.run).give_up(group)
        self._output.note("spawn_failed", group=group, error=error, again=self._groups.spawn_failed(group, now))
        ended = first_exit(self._plan.run, self._plan, group)
        log = PlannedRun(RunFolder(self._plan.run), self._plan).group_log(group, ended[0] if ended is not None else 0)
        self._not_started = (
            f"Group {group} could not be started, and no group is left. {error}. Its output is in {log}. Fix the "
            f"error and resume the job with `mpidata run --resume {self._plan.run}`.",
            log,
        )
        if self._simulations.pending and not self._groups.any_left and not self.stopping:
            self._die_out(*self._not_started, self._groups.any_joined)
