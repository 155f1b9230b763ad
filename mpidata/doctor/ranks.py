"""Programs that the doctor starts as ranks or as single processes, by argument, such as pair, spawn, node or gpu.

Each prints one line of JSON after a mark, because others, such as mpirun, may also print.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpidata.run_module import module_command

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["MARK", "environment_here", "main", "read", "read_all"]

MARK = "mpidata-doctor "
_LARGE, _SMALL, _TIMES = 1 << 20, 8, 200


def read_all(output: str) -> list[dict[str, Any]]:
    """Return all reports of processes in their output."""
    found = []
    for line in output.splitlines():
        if MARK in line:
            try:
                value = json.loads(line[line.index(MARK) + len(MARK) :])
            except ValueError:
                continue
            found += [value] if isinstance(value, dict) else []
    return found


def read(output: str, key: str | None = None) -> dict[str, Any] | None:
    """Return the first report, or the value of the first one that has a key; None if there is none."""
    found = read_all(output)
    return next((each[key] for each in found if key in each), None) if key else next(iter(found), None)


def environment_here() -> dict[str, str]:
    """Return what must be the same on all nodes, without MPI."""
    import mpidata
    from mpidata.native.linked_mpi import linked_mpi

    return {"Python": sys.version.split()[0], "mpidata": mpidata.__version__, "its MPI": str(linked_mpi())}


def main(what: str, *more: str) -> None:
    """Run the check named by the first argument; initialises MPI, except for `gpu` and `mpi4py`."""
    tasks: dict[str, Callable[..., None]] = {
        "pair": _pair, "spawn": _spawn, "child": _child, "gpu": _gpu, "mpi4py": _mpi4py, "node": _node
    }  # fmt: skip
    tasks[what](*more)


def _report(**values: object) -> None:
    print(MARK + json.dumps(values), flush=True)


def _pair() -> None:
    """Report the world, and how fast two ranks communicate. Collective over the world."""
    from mpi4py import MPI

    from mpidata.mpi.network import look_at_process

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
    """Return the seconds for a message to the other rank and one back."""
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


def _node(what: str) -> None:
    """Report this node, then the world, which has one rank on each node. Collective over the world."""
    from mpidata.launch.starting.environment import find_place

    asked, place = json.loads(what), find_place(os.environ)
    _report(
        rank=place.rank if place is not None else -1,
        slurm=os.environ.get("SLURMD_NODENAME"),
        environment=environment_here(),
        missing=[program for program in asked["programs"] if not os.access(program, os.X_OK)],
        folders={str(Path(mark).parent): _problem(Path(mark)) for mark in asked["marks"]},
    )
    started = time.perf_counter()
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        _report(world={"size": MPI.COMM_WORLD.size, "seconds": time.perf_counter() - started})


def _problem(mark: Path) -> str:
    """Return what is wrong with the folder in which another node has created this file; empty if nothing is."""
    if not mark.parent.is_dir():
        return "does not exist"
    if not mark.exists():
        return "is another folder, not shared"
    try:
        with tempfile.TemporaryFile(dir=mark.parent):
            return ""
    except OSError as error:
        return f"cannot be written ({error.strerror})"


def _spawn() -> None:
    """Spawn a rank, communicate with it, and disconnect."""
    from mpi4py import MPI

    info = MPI.Info.Create()
    if "Open MPI" in MPI.Get_library_version():
        info.Set("map_by", ":OVERSUBSCRIBE")
        info.Set("bind_to", "none")
    program, *arguments = module_command("mpidata.doctor.ranks", "child")
    started = time.perf_counter()
    try:
        child = MPI.COMM_SELF.Spawn(program, arguments, maxprocs=1, info=info)
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
    """Report which MPI mpi4py loads, without initialising it."""
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    _report(mpi=MPI.Get_library_version().split("\n")[0].strip("\0"))


def _gpu() -> None:
    """Report which GPUs torch sees, and whether it can allocate pinned memory."""
    import torch

    gpus = (
        [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )
    driver = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    error = ""
    if gpus:
        try:
            pinned = torch.empty(1 << 20, device="cpu", pin_memory=True)
            pinned.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
        except RuntimeError as caught:
            error = str(caught).splitlines()[0]
    _report(gpus=gpus, torch=torch.__version__, driver=driver, error=error)


if __name__ == "__main__":
    main(*sys.argv[1:])
