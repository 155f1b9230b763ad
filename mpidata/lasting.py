"""Standard output that may fail: its reader has gone, or its disk is full. What writes to it goes on without."""

from __future__ import annotations

import os
from typing import IO, Any

__all__ = ["Lasting"]


class Lasting:
    """A text stream that counts as closed from its first failure on, and never raises.

    Parameters
    ----------
    stream : text stream or None
        `sys.stdout`, say; None, as Python has it where that was closed from the start.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream if stream is not None else open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def write(self, text: str) -> int:
        """Write, as far as that can be done."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # ValueError: it was closed
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Flush, as far as that can be done."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        """Get what else the stream has."""
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        """Lead the rest to nowhere: what the stream still holds would fail again at the end of the process."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        except (OSError, ValueError):
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        finally:
            os.close(nowhere)
