"""torch.distributed over the job's trainers, without a fixed port."""

from __future__ import annotations

import atexit
import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import HashStore, PrefixStore, TCPStore  # type: ignore[attr-defined]

from mpidata.errors import StreamError
from mpidata.native.waiting import wait
from mpidata.run.job_environment import in_job, say_no_job
from mpidata.trainer import join as job
from mpidata.trainer.elastic.change import Change
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.trainer import Trainer

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["init_process_group"]

_ADDRESS_BYTES = 512
_LOOPBACK = "lo"
_HERE = "127.0.0.1"
_STORE_TIMEOUT = timedelta(minutes=5)


def init_process_group(backend: str | None = None) -> None:
    """Initialize torch.distributed for the job's trainers: world size and ranks are those of the trainers.

    Parameters
    ----------
    backend : str, optional
        As for ``torch.distributed.init_process_group``; the same on all trainers. The default is nccl (with gloo for
        tensors in CPU memory) if every trainer of a host has its own GPU, otherwise gloo.

    Raises
    ------
    StreamError
        torch.distributed is already initialized.

    Notes
    -----
    Collective over the trainers, including all ranks of replicas; sleeps until all have called it. Call it before or
    after the dataset is created, in the same thread. Sets RANK, WORLD_SIZE, LOCAL_RANK (the index among the trainers of
    this host), LOCAL_WORLD_SIZE (their number), MASTER_ADDR and MASTER_PORT in ``os.environ``. If all trainers are on
    one host and GLOO_SOCKET_IFNAME is not set, it sets this variable to the loopback interface.

    In a job with ``trainers.elastic`` it initializes torch.distributed again, with new ranks, before the step after a
    trainer's death.

    Outside a job this calls ``torch.distributed.init_process_group`` if RANK is set, as by torchrun. Otherwise it
    creates a group of one process, and sets the first four of these variables.
    """
    trainer = job.join() if in_job() else None  # first, so that the job learns of the error
    if dist.is_initialized():
        raise StreamError(
            "torch.distributed is already initialized. Call mpidata.init_process_group() once, instead of "
            "torch.distributed.init_process_group()."
        )
    if trainer is None:
        _init_outside(backend)
        return
    communicator = trainer.scripts
    if communicator is None:  # `mpidata try`: it has set the variables
        dist.init_process_group(backend or "gloo", rank=0, world_size=1)
        atexit.register(_destroy, trainer)
        return
    members = trainer.members
    if members is None:
        _set_up(communicator, communicator.Get_rank(), backend)
    else:
        _set_up_living(members, backend)
        made = [members.generation]

        def set_up_anew(change: Change) -> None:
            if members.generation > made[0]:  # else an earlier call has already included this change
                made[0] = members.generation
                _set_up_living(members, backend)

        members.on_change(set_up_anew)
    # Runs before the trainer leaves the job, because it is registered later.
    atexit.register(_destroy, trainer)


def _set_up_living(members: Members, backend: str | None) -> None:
    """Initialize torch.distributed over the living trainers, after destroying an earlier group."""
    from mpi4py import MPI

    if dist.is_initialized():
        dist.destroy_process_group()
    try:
        _set_up(members.communicator, members.rank, backend)
    except MPI.Exception as error:
        raise StreamError(
            f"A trainer died while torch.distributed was initialized ({error}). The others cannot continue."
        ) from None


def _set_up(communicator: MPI.Intracomm, rank: int, backend: str | None) -> None:
    wait(communicator.Ibarrier(), longest_s=0.02)
    local_rank, local_size = _locality(communicator)
    size = communicator.Get_size()
    one_host = local_size == size
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(local_rank), LOCAL_WORLD_SIZE=str(local_size)
    )
    if one_host and _LOOPBACK in (name for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
    own_gpu = _all(communicator, torch.cuda.is_available() and local_rank < torch.cuda.device_count())
    if backend is None:
        backend = "cpu:gloo,cuda:nccl" if own_gpu else "gloo"
    store = _store(communicator, _HERE if one_host else socket.gethostname())
    os.environ.update(MASTER_ADDR=store.host, MASTER_PORT=str(store.port))
    dist.init_process_group(backend, store=PrefixStore("mpidata", store), rank=rank, world_size=size)


def _init_outside(backend: str | None) -> None:
    say_no_job()
    if "RANK" in os.environ:
        dist.init_process_group(backend)
        return
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    backend = backend or ("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
    dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
    atexit.register(lambda: dist.destroy_process_group() if dist.is_initialized() else None)


def _locality(communicator: MPI.Intracomm) -> tuple[int, int]:
    """Return the rank among the trainers of this host, and their number."""
    from mpi4py import MPI

    local = communicator.Split_type(MPI.COMM_TYPE_SHARED, key=communicator.Get_rank())
    result = local.Get_rank(), local.Get_size()
    local.Free()
    return result


def _all(communicator: MPI.Intracomm, true_here: bool) -> bool:
    from mpi4py import MPI

    everywhere = np.array([true_here], np.int32)
    wait(communicator.Iallreduce(MPI.IN_PLACE, everywhere, MPI.MIN))
    return bool(everywhere[0])


def _store(communicator: MPI.Intracomm, host: str) -> TCPStore:
    """Start the store on a free port of trainer 0 and connect the others to it."""
    address = np.zeros(_ADDRESS_BYTES, np.uint8)
    size = communicator.Get_size()
    store = None
    if communicator.Get_rank() == 0:
        store = _start_store(host, size)
        text = f"{host} {store.port}".encode()
        address[: len(text)] = np.frombuffer(text, np.uint8)
    wait(communicator.Ibcast(address, root=0))
    if store is None:
        host, port = address.tobytes().rstrip(b"\0").decode().split(" ")
        store = TCPStore(host, int(port), size, is_master=False, timeout=_STORE_TIMEOUT, wait_for_workers=False)
    return store


def _start_store(host: str, size: int) -> TCPStore:
    """Start the store on `host`. By default torch makes it listen on all interfaces; on one host only on loopback."""
    if host != _HERE:
        return TCPStore(host, 0, size, is_master=True, timeout=_STORE_TIMEOUT, wait_for_workers=False)
    with socket.socket() as here:
        here.bind((host, 0))
        here.listen(socket.SOMAXCONN)
        return TCPStore(
            host, here.getsockname()[1], size, is_master=True, timeout=_STORE_TIMEOUT, wait_for_workers=False,
            master_listen_fd=here.detach(),
        )  # fmt: skip


def _destroy(trainer: Trainer) -> None:
    # Only if the job ended normally: if trainers have left early, this may wait for them.
    if trainer.ended and dist.is_initialized():
        dist.destroy_process_group()
