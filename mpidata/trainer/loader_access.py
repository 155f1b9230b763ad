"""The place of a dataset on loaders: the trainer, the job, and the connection to the job's loaders."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mpidata.errors import StreamError
from mpidata.loading.figures import Report
from mpidata.loading.transport import Loaders
from mpidata.loading.turns import Turns
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer.elastic.members import Members

__all__ = ["Place", "group_place", "place"]


_shared: Counter[str] = Counter()


@dataclass(frozen=True)
class Place:
    """A trainer's place.

    Attributes
    ----------
    loaders : Loaders
        The connection to the loaders.
    trainer, trainers : int
        Number of this trainer, and number of trainers.
    workers : int
        Number of loaders in the job file.
    retries : int
        How often an index at which a loader has died is retried.
    seed : int
        Seed of the job.
    hold : callable
        Keeps the state of an object, under a name, in the job's checkpoints, and restores it.
    turns : Turns
        Determines which batches count.
    shared : Counter
        Number of datasets of each class that share their samples among the trainers.
    members : Members or None
        The living trainers, in a job that continues when one dies.
    report : callable
        Sends a number with a name to the scheduler; does not block.
    when_leaving : callable
        Registers a callable that is called when this trainer leaves the job.
    asks : bool
        Whether it asks the loaders itself: the first rank of a replica asks for its mates.
    same_call : callable
        Gets the text of a call that all ranks of a replica must make, and its arguments; raises StreamError if the
        calls differ.
    """

    loaders: Loaders
    trainer: int
    trainers: int
    workers: int
    retries: int
    seed: int
    hold: Callable[[str, Any], None]
    turns: Turns = field(default_factory=lambda: Turns(lambda: None))
    shared: Counter[str] = field(default_factory=Counter)
    members: Members | None = None
    report: Report = lambda name, value: None
    when_leaving: Callable[[Callable[[], object]], object] = lambda call: None
    asks: bool = True
    same_call: Callable[..., object] = lambda call, **arguments: None


def place() -> Place:
    """Join the job, if this process has not yet; raises StreamError if it has no loaders.

    Outside a job, and under `mpidata try`, this process is its own loader.
    """
    if not in_job():
        say_no_job()
        trainer_of_group, trainers = group_place()
        return Place(_local_loaders(trainer_of_group), trainer_of_group, trainers, 1, 0, 0, lambda name, thing: None)
    from mpidata.trainer import counting, join
    from mpidata.trainer.replica.calls import same_call

    trainer = join.join()
    plan = trainer.plan
    alone = trainer.is_alone
    if plan.loaders == 0:
        raise StreamError(
            "This job has no loaders, but DataLoader and FileDataset need them. Add `loaders: {ranks: 2}` to the job "
            "file."
        )
    index, members = trainer.replica.number, trainer.members

    def report(name: str, value: float) -> None:  # if the job is over, the next batch reports it
        if not trainer.replica.rank:  # else the first rank of the replica does
            trainer.library.mpidata_trainer_report(name.encode(), value)

    return Place(
        loaders=_local_loaders(index) if alone else join.loaders(),
        trainer=members.rank if members else index,
        trainers=members.count if members else plan.trainers,
        workers=1 if alone else plan.loaders,
        retries=plan.loader_retries,
        seed=plan.seed,
        hold=trainer.checkpoints.hold,
        turns=counting.turns(),
        shared=_shared,
        members=members,
        report=report,
        when_leaving=trainer.leaves.append,
        asks=not trainer.replica.rank,
        same_call=functools.partial(same_call, trainer),
    )


def group_place() -> tuple[int, int]:
    """Return rank and size of the process group of torch.distributed, (0, 1) without one."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


@functools.cache
def _local_loaders(trainer: int) -> Loaders:
    from mpidata.trainer.standalone.loaders import LocalLoaders

    return LocalLoaders(trainer)
