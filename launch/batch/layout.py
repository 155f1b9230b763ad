"""How many ranks of each role a job has, and the CPUs that they need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["LOOP_AND_RECEIVE", "Layout"]

LOOP_AND_RECEIVE = 2
"""CPUs of a trainer: one for its loop, one for its receive thread."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Ranks of a job by role.

    Parameters
    ----------
    trainers : int
        Number of trainers, mates included.
    groups : int
        Number of groups that start with the job, spares included.
    later : int
        Number of groups that the job spawns.
    spares : int
        Number of spares among `groups`.
    loaders, loaders_later, loader_spares : int
        Number of loaders that start with the job, spares included; number that the job spawns; number of spares.
    inference : int
        Number of inference ranks, spares included.
    learners : int
        Number of learners, spares included.
    servers : int
        Number of parameter servers.
    ranks_per_group : int
        Ranks of each group.
    per_node : int or None
        Trainers on each node that has trainers; None: as many as fit.
    gpus_per_rank : int
        GPUs of each trainer.
    ranks_per_replica : int
        Number of consecutive trainers that form a replica; the others are mates of the first.
    """

    trainers: int
    groups: int
    ranks_per_group: int
    later: int = 0
    per_node: int | None = None
    gpus_per_rank: int = 0
    spares: int = 0
    loaders: int = 0
    loaders_later: int = 0
    loader_spares: int = 0
    inference: int = 0
    learners: int = 0
    servers: int = 0
    ranks_per_replica: int = 1

    @classmethod
    def of(cls, job: Job) -> Layout:
        """Return the layout of a job."""
        solvers, trainers, loaders = job.solvers, job.trainers, job.loaders
        split = solvers.start == "split"
        now = loaders is not None and loaders.start == "split"
        loader_spares = loaders.spares if loaders is not None and now else 0
        all_loaders = loaders.ranks + loader_spares if loaders is not None else 0
        return cls(
            trainers=trainers.ranks + trainers.spares,
            groups=solvers.groups + solvers.spares if split else 0,
            ranks_per_group=solvers.ranks_per_group,
            later=0 if split else solvers.groups,
            per_node=trainers.per_node,
            gpus_per_rank=trainers.gpus_per_rank,
            spares=solvers.spares if split else 0,
            loaders=all_loaders if now else 0,
            loaders_later=0 if now else all_loaders,
            loader_spares=loader_spares,
            inference=job.inference.ranks + job.inference.spares if job.inference is not None else 0,
            learners=job.learners,
            servers=job.servers.ranks if job.servers is not None else 0,
            ranks_per_replica=trainers.ranks_per_replica,
        )

    @property
    def order(self) -> list[int]:
        """Numbers of the trainers in the order of their ranks: the first of each replica, then the mates."""
        numbers, each = range(self.trainers), self.ranks_per_replica
        return sorted(numbers, key=lambda number: number % each > 0)

    @property
    def solvers(self) -> int:
        """Number of solver ranks, including those that the job spawns."""
        return (self.groups + self.later) * self.ranks_per_group

    @property
    def last(self) -> int:
        """Number of the ranks after the loaders: inference ranks, learners and servers."""
        return self.inference + self.learners + self.servers

    @property
    def others(self) -> int:
        """Number of solver ranks, loaders, inference ranks, learners and servers."""
        return self.solvers + self.loaders + self.loaders_later + self.last

    @property
    def cpus(self) -> int:
        """CPUs for all ranks: two for a trainer, none for the scheduler, which mostly sleeps."""
        return LOOP_AND_RECEIVE * self.trainers + self.others
