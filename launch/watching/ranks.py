"""The ranks of a job on this machine: which run, and which have ended."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from mpidata.launch.watching.processes import parent_of, processes_of, ranks_of, states_of_children

__all__ = ["LocalRanks"]

_ALL_WITHIN_S = 10.0  # the launcher starts all ranks of a host together
_DEAD_FOR_S = 5.0  # a launcher normally reaps its children immediately


class LocalRanks:
    """Watches the mpidata-rank processes of the world's ranks, even those that are killed without a note.

    Parameters
    ----------
    run : Path
        The run folder.
    launcher : int
        Process id of the launcher.
    clock : callable, optional
        Returns seconds.

    Attributes
    ----------
    gone : set of int
        Ranks that were found and have ended.

    Notes
    -----
    Must be closed. If the kernel has no process descriptors (Linux before 5.3), it finds nothing.
    """

    def __init__(self, run: Path, launcher: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.gone: set[int] = set()
        self._run = run
        self._launcher = launcher
        self._clock = clock
        self._last = clock()  # when a rank was found
        self._dead_since: float | None = None
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
                except (OSError, AttributeError):  # it has ended, or the call does not exist
                    continue
                self._ranks[descriptor] = rank
                self._last = self._clock()
                self._poll.register(descriptor, select.POLLIN)

    def look(self) -> None:
        """Notice which ranks have ended. Cheap."""
        for descriptor, _ in self._poll.poll(0):
            self.gone.add(self._ranks[descriptor])
            self._poll.unregister(descriptor)

    def are_all_dead(self) -> bool:
        """Whether all that the launcher has started here ended seconds ago without its noticing."""
        states = states_of_children(self._launcher)
        if not states or set(states) != {"Z"}:
            self._dead_since = None
            return False
        if self._dead_since is None:
            self._dead_since = self._clock()
        return self._clock() - self._dead_since > _DEAD_FOR_S

    def missing(self, world: int) -> int | None:
        """Return a rank that must have ended before it was found; None if none has, or if ranks run elsewhere."""
        found = set(self._ranks.values())
        if not found or len(found) == world or self._clock() - self._last < _ALL_WITHIN_S:
            return None
        here = set(ranks_of(self._run).values())
        children = {pid for pid in processes_of(self._run) if parent_of(pid) == self._launcher}
        # Other children of the launcher connect to other hosts; ranks that are not its children belong to a daemon.
        return None if children != here else min(set(range(world)) - found)
