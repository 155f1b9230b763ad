"""The roles of the ranks of the world."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mpidata.errors import LaunchError
from mpidata.run.plan.inference import InferenceSection, inference_of
from mpidata.run.plan.loaders import LoadersSection, loaders_of
from mpidata.run.plan.solvers import SolversSection, solvers_of

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["RanksSection", "ranks_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSection:
    """The rank that runs the sampler; `learner` is 1 if there is one, else 0."""

    learner: int = 0
    learner_spares: int = 0

    @property
    def learners_in_world(self) -> int:
        """Number of learners that start with the world, including spares."""
        return self.learner + self.learner_spares


@dataclasses.dataclass(frozen=True, kw_only=True)
class RanksSection(SolversSection, LoadersSection, InferenceSection, LearnerSection):
    """The ranks of the world.

    0 is the scheduler, then come the trainers, and `ranks_per_replica` - 1 mates of each; then, with `start` split, the
    solver groups of `ranks_per_group` ranks each: `groups` that run at once and `spares`; with `loader_start` split,
    the `loaders` and `loader_spares`; then the `inference` ranks and `inference_spares`, the `learner` and
    `learner_spares`, finally the parameter `servers`. Spawned ranks have the next numbers. The last `trainer_spares`
    trainers wait at first. `trainers_at_least` is 0 if the death of a trainer ends the job; an exception of its script
    does so unless `trainers_exceptions_lose` is 1.
    """

    world: int
    trainers: int
    trainer_spares: int = 0
    trainers_at_least: int = 0
    trainers_timeout_s: float = 600.0
    trainers_exceptions_lose: int = 0
    servers: int = 0
    ranks_per_replica: int = 1

    @property
    def first_trainers(self) -> int:
        """Number of trainers, the first ones, that train from the start."""
        return self.trainers - self.trainer_spares

    @property
    def mates(self) -> int:
        """Number of mates of all trainers: the further ranks of their replicas."""
        return self.trainers * (self.ranks_per_replica - 1)

    @property
    def scripts(self) -> range:
        """Ranks that run the training script: those of trainers, then of mates."""
        return range(1, 1 + self.trainers + self.mates)

    def replica_ranks(self, trainer: int) -> tuple[int, ...]:
        """World ranks of a replica, in order: that of its trainer, then those of the mates."""
        first = 1 + self.trainers + trainer * (self.ranks_per_replica - 1)
        return (1 + trainer, *range(first, first + self.ranks_per_replica - 1))

    def name_of(self, rank: int) -> str:
        """Name a trainer, mate or server for a sentence: `Trainer 1 (rank 2)`."""
        role, index, rank_in_group = self.role_of(rank)
        what = f"Mate {rank_in_group} of trainer {index}" if role == "mate" else f"{role.capitalize()} {index}"
        return f"{what} (rank {rank})"

    @property
    def server_ranks(self) -> range:
        """Ranks of the parameter servers."""
        return range(self.world - self.servers, self.world)

    def role_of(self, rank: int) -> tuple[str, int, int]:
        """Return the role of a rank of the world.

        Parameters
        ----------
        rank : int
            0 to `world` - 1.

        Returns
        -------
        role : str
            `scheduler`, `trainer`, `mate`, `solver`, `loader`, `inference`, `learner` or `server`.
        index : int
            Number of the trainer, group, loader, inference rank, learner, server or a mate's trainer; 0: scheduler.
        rank_in_group : int
            Rank within the solver group, or of a mate within its replica, from 1; else 0.

        Raises
        ------
        LaunchError
            The rank is outside the world of the plan.
        """
        if not 0 <= rank < self.world:
            raise LaunchError(
                f"There is no rank {rank} in this job of {self.world} ranks. Start it with -n {self.world}."
            )
        if rank == 0:
            return "scheduler", 0, 0
        if rank <= self.trainers:
            return "trainer", rank - 1, 0
        if rank in self.scripts:
            trainer, mate = divmod(rank - 1 - self.trainers, self.ranks_per_replica - 1)
            return "mate", trainer, 1 + mate
        if rank in self.server_ranks:
            return "server", rank - self.server_ranks.start, 0
        first_learner = self.server_ranks.start - self.learners_in_world
        if rank >= first_learner:
            return "learner", rank - first_learner, 0
        first_inference = first_learner - self.inference_in_world
        if rank >= first_inference:
            return "inference", rank - first_inference, 0
        group, rank_in_group = divmod(rank - self.scripts.stop, self.ranks_per_group)
        if group < self.groups_in_world:
            return "solver", group, rank_in_group
        return "loader", rank - self.scripts.stop - self.groups_in_world * self.ranks_per_group, 0

    def rank_of(self, group: int, rank_in_group: int) -> int | None:
        """Return the world rank of a group's rank; None if the group was spawned."""
        if group >= self.groups_in_world:
            return None
        return self.scripts.stop + group * self.ranks_per_group + rank_in_group

    def rank_of_loader(self, loader: int) -> int | None:
        """Return the world rank of a loader; None if it was spawned."""
        first = self.scripts.stop + self.groups_in_world * self.ranks_per_group
        return first + loader if loader < self.loaders_in_world else None

    def rank_of_inference(self, number: int) -> int | None:
        """Return the world rank of an inference rank; None if it was spawned."""
        first = self.server_ranks.start - self.learners_in_world - self.inference_in_world
        return first + number if number < self.inference_in_world else None

    def rank_of_learner(self, number: int) -> int | None:
        """Return the world rank of a learner; None if it was spawned."""
        first = self.server_ranks.start - self.learners_in_world
        return first + number if number < self.learners_in_world else None


def ranks_of(job: Job) -> RanksSection:
    """Plan the ranks of a job."""
    several = vars(solvers_of(job)) | vars(loaders_of(job)) | vars(inference_of(job)) | vars(_learner_of(job))
    trainers = job.trainers
    return RanksSection(
        world=job.world_size,
        trainers=trainers.replicas + trainers.spares // trainers.ranks_per_replica,
        trainer_spares=trainers.spares // trainers.ranks_per_replica,
        ranks_per_replica=trainers.ranks_per_replica,
        trainers_at_least=trainers.at_least,
        trainers_timeout_s=trainers.timeout_s,
        trainers_exceptions_lose=int(trainers.exceptions_lose),
        servers=job.servers.ranks if job.servers is not None else 0,
        **several,
    )


def _learner_of(job: Job) -> LearnerSection:
    """Plan the learner of a job."""
    parameters = job.parameters
    if not parameters.learner_rank:
        return LearnerSection()
    return LearnerSection(learner=1, learner_spares=parameters.learner_spares)
