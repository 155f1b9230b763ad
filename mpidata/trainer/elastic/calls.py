"""Calls of a script over the living trainers: its rank, their number, and reductions over all of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from mpidata.errors import StreamError
from mpidata.run.job_environment import in_job
from mpidata.trainer import join as job
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.change import Change
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.state_transfer import refuse_new

__all__ = ["all_reduce", "on_change", "rank", "world_size"]

_OPERATIONS = {"sum": "SUM", "mean": "SUM", "max": "MAX", "min": "MIN"}
_OF_TORCH = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}


def rank() -> int:
    """Return the number of this trainer, from 0; outside a job the rank in torch.distributed, or 0.

    In a job with ``trainers.elastic`` the number may change when a trainer dies: the trainer with the highest number
    takes its place. Joins the job, which is collective the first time.
    """
    return _place()[0]


def world_size() -> int:
    """Return the number of trainers; in a job with ``trainers.elastic``, of the living ones. Otherwise as `rank`."""
    return _place()[1]


def on_change(call: Callable[[Change], object]) -> None:
    """Register a function that is called on all trainers after one has died, joined or left, between two steps.

    Parameters
    ----------
    call : callable
        Called as ``call(change)`` with a `Change`: ``rank`` and ``trainers``, the new rank and number of trainers;
        ``before``, the former number; ``lost``, the numbers of trainers that died; ``joined``, those of spares that
        joined; ``retired``, those of trainers that left because fewer were requested; and ``generation``, which counts
        the changes. It may use `all_reduce`.

    Notes
    -----
    The function is called at the next forward pass of `DistributedDataParallel`. Has no effect if the job does not
    survive the death of a trainer.
    """
    if (members := _members()) is not None:
        members.on_change(call)


def all_reduce(tensor: torch.Tensor, op: str = "sum") -> torch.Tensor:
    """Reduce a tensor over the trainers, in place. If a trainer dies meanwhile, the reduction is repeated without it.

    Parameters
    ----------
    tensor : torch.Tensor
        In CPU memory; of the same shape and dtype on all trainers.
    op : str
        ``sum``, ``mean``, ``max`` or ``min``.

    Returns
    -------
    torch.Tensor
        The tensor, with the same values on all living trainers.

    Raises
    ------
    StreamError
        An unknown `op`; the mean of integers; in a job with ``trainers.elastic``: a tensor that is not in CPU memory,
        or has a dtype that NumPy lacks.

    Notes
    -----
    Collective over the living trainers; sleeps. In other jobs and outside a job it calls torch.distributed's
    all_reduce, if torch.distributed is initialized.
    """
    if op not in _OPERATIONS:
        raise StreamError(f'all_reduce: op is {op!r}. Give "sum", "mean", "max" or "min".')
    if op == "mean" and not (tensor.is_floating_point() or tensor.is_complex()):
        raise StreamError(f"all_reduce: the tensor is {tensor.dtype}, and integers have no mean. Give tensor.float().")
    members = _members()
    count = _over_group(tensor, op) if members is None else _over_members(tensor, op, members)
    return tensor.div_(count) if op == "mean" else tensor


def _over_group(tensor: torch.Tensor, op: str) -> int:
    if not (dist.is_available() and dist.is_initialized()):
        return 1
    dist.all_reduce(tensor, _OF_TORCH[op])
    return dist.get_world_size()


def _over_members(tensor: torch.Tensor, op: str, members: Members) -> int:
    from mpi4py import MPI

    if tensor.device.type != "cpu" or tensor.dtype in (torch.bfloat16, torch.float16):
        raise StreamError(
            f"all_reduce: the tensor is {tensor.dtype} on {tensor.device}. With 'trainers.elastic' give one in CPU "
            "memory, of float32, float64 or an integer dtype."
        )
    refuse_new(members, "all_reduce")
    own = tensor.detach().contiguous().clone()
    result = torch.empty_like(own)

    def begin(attempt: Attempt) -> None:
        operation = getattr(MPI, _OPERATIONS[op])
        attempt.post(attempt.communicator.Iallreduce, own.numpy(), result.numpy(), operation)

    count = members.together(begin)
    with torch.no_grad():
        tensor.copy_(result)
    return count


def _members() -> Members | None:
    return job.join().members if in_job() else None


def _place() -> tuple[int, int]:
    if not in_job():
        initialised = dist.is_available() and dist.is_initialized()
        return (dist.get_rank(), dist.get_world_size()) if initialised else (0, 1)
    trainer = job.join()
    if trainer.members is not None:
        return trainer.members.rank, trainer.members.count
    return (trainer.scripts.Get_rank(), trainer.scripts.Get_size()) if trainer.scripts else (0, 1)
