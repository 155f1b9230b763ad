"""The launcher of a carried program: srun in a Slurm allocation, else the mpirun of the program's own MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["is_linked_with", "launcher_of", "most_steps", "starts_by_srun"]

_LIBRARIES = {"libmpi.so": "openmpi", "libmpich.so": "mpich", "libmpi_cray.so": "cray"}
_TIMEOUT_S = 10.0
_HEAD_BYTES = 16 << 20  # of an executable, where the names of its libraries are


def launcher_of(program: Sequence[str], ranks: int, carriers: int = 1) -> tuple[str, ...]:
    """Return the launcher command for a program's ranks.

    Parameters
    ----------
    program : sequence of str
        The program, executable first.
    ranks : int
        Number of ranks to start.
    carriers : int
        Number of carriers in a group: if more than one, the ranks run on the hosts of all of them, else on this one.

    Returns
    -------
    tuple of str
        The words before the program, with `{hosts}` for the hosts' names, "node1,node2", and `{nodes}` for their
        number; empty for one rank, which is started directly.
    """
    if ranks == 1:
        return ()
    if starts_by_srun():
        # The job's own step has all CPUs and the memory. The death of a rank must end the others.
        options = ["--overlap", "--exact", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit=1", "--input=none"]
        return ("srun", *options, "--nodes={nodes}", "--nodelist={hosts}", "-n", str(ranks))
    library = next(_linked(program[0]), None)
    mpirun = next((path for path in _candidates(library) if path is not None), "mpirun")
    # Several programs of this job share the host: none may bind to its first cores, or count them as its own.
    options = ["--oversubscribe", "--bind-to", "none"] if _is_open_mpi(mpirun) else []
    if options and os.geteuid() == 0:
        options.append("--allow-run-as-root")
    if carriers > 1:
        options += ["--map-by", "node", "--host", "{hosts}"] if options else ["-hosts", "{hosts}"]
    return (mpirun, *options, "-n", str(ranks))


def starts_by_srun() -> bool:
    """Whether `launcher: auto` uses srun: in a Slurm allocation."""
    return bool(os.environ.get("SLURM_JOB_ID")) and shutil.which("srun") is not None


def most_steps() -> int | None:
    """Return the number of steps that Slurm allows in a job, MaxStepCount; None if unknown."""
    told = _told("scontrol", "show", "config")
    found = re.search(r"^MaxStepCount\s*=\s*(\d+)", told, re.MULTILINE)
    return int(found[1]) if found else None


def is_linked_with(program: str, library: str) -> bool:
    """Whether an executable contains the name of a library, for example "libmpidata.so", as one that it needs."""
    path = shutil.which(program)
    try:
        with open(path or program, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(b"\x7fELF") and f"\0{library}.".encode() in head


def _told(*command: str) -> str:
    """Return what a command prints; "" if it cannot be run."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout


def _linked(program: str) -> Iterator[Path]:
    """Yield the MPI libraries that an executable is linked with, as this host's dynamic linker finds them."""
    path = shutil.which(program)
    if path is None:
        return
    for line in _told("ldd", path).splitlines():
        name, _, rest = line.strip().partition(" => ")
        if any(name.startswith(library) for library in _LIBRARIES) and rest.startswith("/"):
            yield Path(rest.split(" (")[0])


def _candidates(library: Path | None) -> Iterator[str | None]:
    if library is not None:
        kind = next(kind for name, kind in _LIBRARIES.items() if library.name.startswith(name))
        for path in (library, library.resolve()):
            yield shutil.which("mpirun", path=str(path.parent.parent / "bin"))
        if library.parent.is_relative_to("/usr/lib") or library.parent.is_relative_to("/lib"):
            yield shutil.which(f"mpirun.{kind}")  # where several MPIs share a folder, as in Debian
    yield shutil.which("mpirun")


def _is_open_mpi(mpirun: str) -> bool:
    told = _told(mpirun, "--version")
    return "Open MPI" in told or "OpenRTE" in told
