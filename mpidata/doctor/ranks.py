"""What the doctor starts as ranks, and in processes of their own: `python -m mpidata.doctor.ranks pair|spawn|gpu`.

Each prints one line of JSON after a mark: others may print too, mpirun for one.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["MARK", "main", "read"]

MARK = "mpidata-doctor "
_LARGE, _SMALL, _TIMES = 1 << 20, 8, 200


def read(output: str) -> dict[str, Any] | None:
    """Find what a process has reported in all that was printed; None where it has not."""
    for line in output.splitlines():
        if MARK in line:
            try:
                value = json.loads(line[line.index(MARK) + len(MARK) :])
            except ValueError:
                continue
            return value if isinstance(value, dict) else None
    return None


def main(what: str) -> None:
    """Do what the argument says; initialises MPI, but for `gpu` and `library`."""
    {"pair": _pair, "spawn": _spawn, "child": _child, "gpu": _gpu, "mpi4py": _mpi4py}[what]()


def _report(**values: object) -> None:
    print(MARK + json.dumps(values), flush=True)


def _pair() -> None:
    """Tell of the world, and how fast two ranks talk. Collective over the world."""
    from mpi4py import MPI

    from mpidata.transport import look_at_process

    world = MPI.COMM_WORLD
    figures = {"mb_per_s": 0.0, "us": 0.0}
    if world.size == 2:
        _exchange(world, _LARGE, 10)
        figures["us"] = 1e6 * _exchange(world, _SMALL, _TIMES) / 2
        figures["mb_per_s"] = 2 * _LARGE / 1e6 / _exchange(world, _LARGE, _TIMES)
    usage = look_at_process()
    if world.rank == 0:
        version = MPI.Get_library_version()
        shared = {"devices": usage.devices, "shared_memory": usage.shared_memory}
        _report(
            size=world.size, threads=MPI.Query_thread(), mpi=version.split("\n")[0].strip("\0"), **shared, **figures
        )


def _exchange(world: MPI.Intracomm, size: int, times: int) -> float:
    """Seconds for a message to the other rank and one back."""
    message, other = bytearray(size), 1 - world.rank
    world.Barrier()
    started = time.perf_counter()
    for _ in range(times):
        if world.rank == 0:
            world.Send(message, other)
        world.Recv(message, other)
        if world.rank == 1:
            world.Send(message, other)
    return (time.perf_counter() - started) / times


def _spawn() -> None:
    """Spawn a rank, meet it, and part."""
    from mpi4py import MPI

    info = MPI.Info.Create()
    if "Open MPI" in MPI.Get_library_version():
        info.Set("map_by", ":OVERSUBSCRIBE")
        info.Set("bind_to", "none")
    started = time.perf_counter()
    try:
        child = MPI.COMM_SELF.Spawn(sys.executable, ["-m", __spec__.name, "child"], maxprocs=1, info=info)
        both = child.Merge()
        both.Barrier()
        _report(spawned=both.size == 2, seconds=time.perf_counter() - started)
        both.Free()
        child.Disconnect()
    except MPI.Exception as error:
        _report(spawned=False, error=str(error).splitlines()[0])


def _child() -> None:
    from mpi4py import MPI

    parent = MPI.Comm.Get_parent()
    both = parent.Merge(True)
    both.Barrier()
    both.Free()
    parent.Disconnect()


def _mpi4py() -> None:
    """Tell which MPI mpi4py loads, without initialising it."""
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    _report(mpi=MPI.Get_library_version().split("\n")[0].strip("\0"))


def _gpu() -> None:
    """Tell which GPUs torch sees, and whether it gets pinned memory."""
    import torch

    gpus = (
        [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )
    driver = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    error = ""
    if gpus:
        try:
            pinned = torch.empty(1 << 20, pin_memory=True)
            pinned.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
        except RuntimeError as caught:
            error = str(caught).splitlines()[0]
    _report(gpus=gpus, torch=torch.__version__, driver=driver, error=error)


if __name__ == "__main__":
    main(sys.argv[1])
