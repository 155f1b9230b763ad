"""The file `stop` of a run folder, with which `mpidata run` asks the job to end."""

from __future__ import annotations

import dataclasses
from pathlib import Path

__all__ = ["CTRL_C", "StopRequest", "read_stop"]

CTRL_C = "Ctrl-C"
_WITHOUT = "without-checkpoint"


@dataclasses.dataclass(frozen=True)
class StopRequest:
    """A request to stop the job.

    Attributes
    ----------
    signal : str
        Name of the received signal.
    checkpoint : bool
        Whether the job is to write a checkpoint first.
    """

    signal: str
    checkpoint: bool = True

    @property
    def interrupt(self) -> bool:
        """Whether Ctrl-C was pressed: the training loops raise KeyboardInterrupt."""
        return self.signal == "SIGINT"

    @property
    def name(self) -> str:
        """Name for the user."""
        return CTRL_C if self.interrupt else self.signal

    def text(self) -> str:
        """Return the line of the file."""
        return self.signal if self.checkpoint else f"{self.signal} {_WITHOUT}"


def read_stop(path: Path) -> StopRequest | None:
    """Read the file; None if it does not exist."""
    try:
        words = path.read_text(encoding="utf-8").split()
    except OSError:
        return None
    return StopRequest(words[0] if words else "SIGTERM", _WITHOUT not in words)
