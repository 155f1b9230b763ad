"""Names and versions of MPIs, from the version texts of their libraries and their mpirun."""

from __future__ import annotations

import dataclasses
import re

__all__ = ["OPEN_MPI", "MpiName", "mpi_of_launcher", "mpi_of_library"]

OPEN_MPI = "Open MPI"
_HYDRA = "MPICH"

# The first match counts: other MPIs also call themselves MPICH somewhere.
_LIBRARIES = {
    OPEN_MPI: r"^Open MPI v(\S+?)(?:,|\s|$)",
    "Cray MPICH": r"CRAY MPICH version (\S+)",
    "Intel MPI": r"^Intel\(R\) MPI Library (\S+)",
    "MVAPICH": r"^MVAPICH\d?(?:-\w+)? Version\s*:\s*(\S+)",
    _HYDRA: r"^MPICH Version:\s*(\S+)",
}
_LAUNCHERS = {
    OPEN_MPI: r"\((?:Open MPI|OpenRTE)\) (\S+)",
    "Intel MPI": r"Intel\(R\) MPI Library.*Version (\S+)",
    _HYDRA: r"HYDRA build details:\s+Version:\s+(\S+)",
}


@dataclasses.dataclass(frozen=True)
class MpiName:
    """An MPI, or the launcher of one.

    Parameters
    ----------
    name : str
        `Open MPI`, `MPICH`, `Intel MPI`, `Cray MPICH`, `MVAPICH`, or the text that was not understood.
    version : str
        For example `5.0.11`; empty if unknown.
    """

    name: str
    version: str = ""

    def __str__(self) -> str:
        """Write name and version."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def major(self) -> str:
        """First number of the version; empty if unknown."""
        found = re.match(r"\d+", self.version)
        return found[0] if found else ""

    def is_same(self, other: MpiName) -> bool:
        """Whether a program built with one may run with the other: name and first number of the version agree."""
        return (self.name, self.major) == (other.name, other.major)

    def starts(self, library: MpiName) -> bool:
        """Whether this launcher can start programs built with a library."""
        if OPEN_MPI in (self.name, library.name):
            return self.is_same(library)
        return True  # Hydra's relatives all speak PMI


def mpi_of_library(text: str) -> MpiName:
    """Parse the text of MPI_Get_library_version, or its first line."""
    return _find(_LIBRARIES, text) or MpiName(text.split("\n")[0].split(",")[0].strip("\0 \t") or "an unknown MPI")


def mpi_of_launcher(text: str) -> MpiName | None:
    """Parse the output of `mpirun --version`; None if it is not recognized."""
    return _find(_LAUNCHERS, text)


def _find(patterns: dict[str, str], text: str) -> MpiName | None:
    for name, pattern in patterns.items():
        if found := re.search(pattern, text, re.MULTILINE):
            return MpiName(name, found[1])
    return None
