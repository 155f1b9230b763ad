"""One parameter server in the script's own process, outside a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from mpidata.servers.part import Making, Part, State

__all__ = ["Alone"]


class Alone:
    """One server in this process, with the methods of `Link`."""

    servers = 1
    is_first = True
    made: ClassVar = False  # whether this process has such a server

    def make(self, making: Making, version: int, states: Sequence[State]) -> None:
        """Create the server."""
        self._part, self._version = Part(making, 0, 1, states[0]), version

    def join(self, digest: int) -> None:
        """Do nothing: there is no other trainer."""

    def push(self, gradients: Sequence[Any]) -> None:
        """Make a step."""
        self._part.step([torch.from_numpy(gradients[0])])
        self._version += 1

    def wait_for_push(self) -> None:
        """Return at once: the push has been taken."""

    def pull(self, parts: Sequence[Any]) -> tuple[int, int]:
        """Get the weights."""
        parts[0][:] = self._part.bytes.numpy()
        return self._version, 0

    def rows(self, table: int, wanted: Sequence[Any], dim: int) -> list[Any]:
        """Return rows of a table."""
        return [self._part.tables[table].get(torch.from_numpy(wanted[0])).numpy()]

    def rest(self) -> None:
        """Do nothing: there is no other trainer."""

    pause = settle = rest

    def save(self, checkpoint: int, come_away: Any = None) -> tuple[int, list[State]]:
        """Return the state."""
        return self._version, [self._part.state()]
