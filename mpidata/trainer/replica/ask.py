"""mpidata.replica: the position of a process among the copies of the model."""

from __future__ import annotations

from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer import join as job
from mpidata.trainer.loader_access import group_place
from mpidata.trainer.replica.replica import Replica

__all__ = ["replica"]


def replica() -> Replica:
    """Return the position of this process among the copies of the model.

    Returns
    -------
    Replica
        ``number`` and ``count``: the number of this process's copy, and the number of copies; the rank and size of data
        parallelism. ``rank`` and ``size``: the rank within the copy, and the number of ranks that hold it
        (``trainers.ranks_per_replica``); the rank and size of model parallelism. The rank in torch.distributed is
        ``number * size + rank``.

    Notes
    -----
    The first call of mpidata in a process joins the job, which is collective. Outside a job each process of
    torch.distributed is a replica.
    """
    if in_job():
        return job.join().replica
    say_no_job()
    rank, processes = group_place()
    return Replica(rank, processes)
