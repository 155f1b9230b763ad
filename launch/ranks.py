"""The ranks of a job that run on this machine: which there are, and which have ended."""

from __future__ import annotations

import os
import select
from pathlib import Path

from mpidata.launch.cleanup import ranks_of

__all__ = ["LocalRanks"]


class LocalRanks:
    """Watches the processes mpidata-rank of the world's ranks, even those that are killed without a word.

    Parameters
    ----------
    run : Path
        The run folder.

    Attributes
    ----------
    gone : set of int
        Ranks that were found and have ended.

    Notes
    -----
    To be closed. Where the kernel has no process descriptors (Linux before 5.3) it finds nothing.
    """

    def __init__(self, run: Path) -> None:
        self.gone: set[int] = set()
        self._run = run
        self._ranks: dict[int, int] = {}  # by descriptor
        self._poll = select.poll()

    def close(self) -> None:
        """Forget all processes."""
        for descriptor in self._ranks:
            os.close(descriptor)
        self._ranks.clear()

    def __len__(self) -> int:
        """Count the ranks that were found."""
        return len(self._ranks)

    def find(self) -> None:
        """Look for ranks that have started. Takes some milliseconds."""
        known = set(self._ranks.values())
        for rank, pid in ranks_of(self._run).items():
            if rank not in known:
                try:
                    descriptor = os.pidfd_open(pid)
                except (OSError, AttributeError):  # it has ended, or there is no such call
                    continue
                self._ranks[descriptor] = rank
                self._poll.register(descriptor, select.POLLIN)

    def look(self) -> None:
        """Notice which ranks have ended. Cheap."""
        for descriptor, _ in self._poll.poll(0):
            self.gone.add(self._ranks[descriptor])
            self._poll.unregister(descriptor)
