"""mpidata.LocalSGD: each trainer makes its own steps, and at intervals all average their parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from mpidata.errors import StreamError
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer import join as job
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.reducer import SharedTensors, bytes_of, make_alike
from mpidata.trainer.local_sgd.differences import Differences
from mpidata.trainer.local_sgd.meeting_points import How, come
from mpidata.trainer.local_sgd.requests import Asks
from mpidata.trainer.local_sgd.static_members import Fixed
from mpidata.trainer.trainer import Trainer

__all__ = ["LocalSGD"]

_NAME = "mpidata.LocalSGD"
_ASKS_S = 60.0  # after this wait for the others' next average a trainer requests one

Outer = Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer]


class LocalSGD:
    """Local SGD: each trainer steps its own optimizer, and every `every` steps all average their parameters.

    The loop is the same as with one trainer: ``optimizer.step()`` makes a step, and an average when one is due. The
    first trainer that has made `every` steps requests an average. The others join it after their next step, or while
    they wait for a sample of a stream. Each trainer is weighted with the number of samples that it has had since the
    last average. With `outer` this is DiLoCo (Douillard et al., arXiv 2311.08105).

    Parameters
    ----------
    model : torch.nn.Module
        The same on all trainers, and not a DistributedDataParallel. All trainers get the values of trainer 0.
    optimizer : torch.optim.Optimizer
        The optimizer of this trainer. Its state (momenta) is not averaged.
    every : int
        Number of steps between two averages.
    outer : callable, optional
        Gets the parameters and returns an optimizer that uses their mean difference as the gradient, for example
        ``lambda parameters: torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)``. Checkpoints contain its
        state. Without `outer` the parameters are set to the mean.

    Raises
    ------
    StreamError
        An argument is invalid, the parameters differ between trainers, the script already has a LocalSGD, or several
        processes were started without a job.

    Notes
    -----
    After each average the buffers (BatchNorm) are those of trainer 0. The constructor is collective over the trainers.
    A step that averages sleeps until the other trainers join. The trainers also average before each checkpoint and at
    the end of a stream; with ``trainers.elastic`` also at the end of an epoch of a shared dataset, and before
    `mpidata.all_reduce`. A trainer that waits there for the others joins their averages until all have arrived, and so
    does a trainer whose script has ended. For one thread.
    """

    def __init__(
        self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, every: int = 16, outer: Outer | None = None
    ) -> None:
        self._trainer, self._members = _join()  # first, so that the job learns of refused arguments
        _check(model, optimizer, every, outer)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        everything = [*model.parameters(), *model.buffers()]
        self._every = every
        if self._trainer is not None and self._trainer.apart is not None:
            raise StreamError("mpidata.LocalSGD: this script already has one. Create only one, before the loop.")
        if self._members is not None:
            make_alike(everything, self._members, _NAME)
            self._asks = Asks(self._members)
            self._members.giving.model = lambda: bytes_of(everything)
            self._members.apart = self
        self._steps = 0
        self._buffers = list(model.buffers())
        self._differences = Differences(parameters)
        self._outer = None if outer is None else outer(self._differences.anchors)
        self._begun = False  # whether anchors were stored since the last average: a script may load a state before
        self._had = self._samples()
        if self._trainer is not None:
            if self._outer is not None:
                self._trainer.checkpoints.hold(_NAME, self._outer)
            self._trainer.checkpoints.come_first = self.average
            self._trainer.apart, self._trainer.share.weighed = self, True
            self._trainer.leaves.append(functools.partial(self.come, How.LEAVING))
        optimizer.register_step_pre_hook(lambda *_: self._begin())
        optimizer.register_step_post_hook(lambda *_: self._stepped())

    def average(self) -> None:
        """Average now. Collective over the trainers; sleeps until all have called it.

        Call it before you use the model for something else, for example validation.
        """
        come(self)

    def hear(self) -> None:
        """Do nothing, because the next average reports it; for mpidata itself."""

    def look(self) -> None:
        """Average if another trainer has requested it; mpidata calls this while the script waits for a sample."""
        if self._members is not None and self._asks.asked():
            self._average()

    def average_now(self) -> None:
        """Request an average from the others, and join it; for mpidata itself."""
        if self._members is not None:
            self._asks.ask()
        self._average()

    def rest(self) -> None:
        """Do nothing, because nobody waits for steps; for mpidata itself."""

    def come(self, how: How) -> bool:
        """Average with the others until all have arrived; False if the set of trainers changes. For mpidata itself."""
        members = self._members
        if members is not None and members.waits:  # it no longer trains
            return True
        generation = 0 if members is None else members.generation
        while True:
            waiting, trainers = self._average(how)
            if how is How.LEAVING:
                if waiting[How.LEAVING] == trainers:
                    return True
                continue
            if members is not None and members.generation != generation:
                return False
            everyone = waiting.sum() == trainers
            if everyone and how is How.JOINING:  # else the others wait for this one elsewhere
                return bool(waiting[How.JOINING] == trainers)
            if everyone and not waiting[How.JOINING]:
                return True

    def _begin(self) -> None:
        """Store the parameters before the first step after an average."""
        if not self._begun:
            self._differences.begin()
            self._begun = True

    def _stepped(self) -> None:
        self._steps += 1
        if self._steps >= self._every:
            self.average_now()
        else:
            self.look()

    def _average(self, how: How | None = None) -> tuple[Any, int]:
        """Average; returns the number of waiting trainers, by `How`, and of all trainers. Collective; sleeps."""
        reached("average")
        self._begin()
        own = np.zeros(1 + max(How) + 1)
        own[0] = self._weight()
        if how is not None:
            own[1 + how] = 1
        total, trainers = own, 1
        self._differences.take(own[0])
        if self._members is not None:
            total, trainers = self._sum(own, how, self._members)
        if total[0] > 0:
            self._differences.to_gradients(total[0])
            self._differences.subtract() if self._outer is None else self._outer.step()
            self._differences.give()
        if self._steps:
            self._steps, self._had = 0, self._samples()
        reached("averaged")
        if self._members is not None:
            self._members.tell()
        return total[1:], trainers

    def _sum(self, own: Any, how: How | None, members: Members) -> tuple[Any, int]:
        totals: list[Any] = []
        asked: list[bool] = []
        buffers = SharedTensors(self._buffers, members)

        def begin(attempt: Attempt) -> None:
            totals.append(np.zeros_like(own))
            attempt.post(attempt.communicator.Iallreduce, own, totals[-1])
            self._differences.sum(attempt)
            buffers.send(attempt)

        def report(seconds: float) -> None:
            if how is not None and not asked and seconds > _ASKS_S:
                asked.append(True)
                self._asks.ask(again=True)
            members.report(seconds)

        attempt = members.attempt(report)
        begin(attempt)
        trainers = members.together(begin, attempt, step=True)
        self._asks.averaged()
        buffers.give()
        return totals[-1], trainers

    def _samples(self) -> int:
        return 0 if self._trainer is None else self._trainer.samples + self._trainer.turns.samples

    def _weight(self) -> float:
        """Return the number of samples since the last average, or of steps if none were counted; 0 without a step."""
        return float(self._samples() - self._had or self._steps) if self._steps else 0.0


def _join() -> tuple[Trainer | None, Members | None]:
    if not in_job():
        say_no_job()
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise StreamError(
                "mpidata.LocalSGD averages over the trainers of a job, but this process is not in a job. Start the "
                "script with `mpidata run`."
            )
        return None, None
    trainer = job.join()
    trainer.replica.refuse("mpidata.LocalSGD averages over the trainers")
    if trainer.members is not None or trainer.communicator is None:
        return trainer, trainer.members
    return trainer, Fixed(trainer.communicator.Dup(), lambda seconds: None)


def _check(model: torch.nn.Module, optimizer: torch.optim.Optimizer, every: int, outer: Outer | None) -> None:
    if isinstance(model, DistributedDataParallel):
        raise StreamError(
            "mpidata.LocalSGD: the model is a DistributedDataParallel, which sums gradients in each step. Give the "
            "module itself."
        )
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise StreamError(f"mpidata.LocalSGD: {type(optimizer).__name__} is not a torch optimizer. Give one.")
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise StreamError(f"mpidata.LocalSGD: every={every!r} is not a positive integer. Give 1 or more.")
    if outer is not None and (isinstance(outer, torch.optim.Optimizer) or not callable(outer)):
        raise StreamError(
            "mpidata.LocalSGD: outer must be a function that makes an optimizer from parameters, for example "
            "`lambda parameters: torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)`."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise StreamError("mpidata.LocalSGD: no parameter of the model requires a gradient.")
