"""The position of a rank among the replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpidata.errors import StreamError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.run.plan import Plan

__all__ = ["Replica", "join_replica", "join_scripts"]


@dataclass(frozen=True)
class Replica:
    """The position of a training process among the copies of the model.

    Attributes
    ----------
    number, count : int
        Number of this process's replica, and number of replicas: rank and size of data parallelism.
    rank, size : int
        Rank within the replica, and number of its ranks: rank and size of model parallelism. The ranks of a replica get
        the same batches.
    """

    number: int = 0
    count: int = 1
    rank: int = 0
    size: int = 1

    def refuse(self, what: str) -> None:
        """Raise StreamError if a replica has several ranks; `what`: the call, and why it does not support them."""
        if self.size > 1:
            raise StreamError(
                f"{what}, but with 'trainers.ranks_per_replica' {self.size} ranks hold one copy of the model together. "
                "Average over the ranks of a device mesh's data-parallel dimension, with torch's fully_shard, or with "
                "its DistributedDataParallel and their process_group."
            )


def join_scripts(plan: Plan) -> MPI.Intracomm:
    """Create the communicator of all ranks that run the script, replica by replica; collective over them."""
    return _make([rank for trainer in range(plan.trainers) for rank in plan.replica_ranks(trainer)], 1)


def join_replica(plan: Plan, trainer: int) -> MPI.Intracomm:
    """Create the communicator of a replica; collective over its ranks."""
    return _make(plan.replica_ranks(trainer), 2)


def _make(ranks: list[int] | tuple[int, ...], tag: int) -> MPI.Intracomm:
    from mpi4py import MPI

    group = MPI.COMM_WORLD.Get_group()
    own = group.Incl(ranks)
    communicator = MPI.COMM_WORLD.Create_group(own, tag)
    own.Free()
    group.Free()
    return communicator
