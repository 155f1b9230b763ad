"""Standard output that may fail, because its reader is gone or its disk is full, without ending the program."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from typing import IO, Any

__all__ = ["FailsafeStream", "keep_printing"]


class FailsafeStream:
    """A text stream that counts as closed after its first failure, and never raises.

    Parameters
    ----------
    stream : text stream or None
        For example `sys.stdout`; None, as that is in Python if it was closed from the start.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream if stream is not None else open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def write(self, text: str) -> int:
        """Write, as far as possible."""
        try:
            try:
                return self._stream.write(text)
            except UnicodeEncodeError:
                coding: str = getattr(self._stream, "encoding", "ascii")
                return self._stream.write(text.encode(coding, "replace").decode(coding))
        except (OSError, ValueError):  # ValueError: it was closed
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Flush, as far as possible."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream."""
        return getattr(self._stream, name)

    def _give_up(self) -> None:
        """Discard further output: what the stream still holds would fail again at the end of the process."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, self._stream.fileno())
        except (OSError, ValueError):
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        finally:
            os.close(nowhere)


def keep_printing() -> None:
    """Discard what this program prints to its log if the disk is full, instead of ending the program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if stream is getattr(sys, f"__{name}__") and stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                log = _Log(stream.fileno(), "w", closefd=False)
                kind = {"encoding": stream.encoding, "errors": stream.errors}
                setattr(sys, name, io.TextIOWrapper(log, line_buffering=True, write_through=True, **kind))


class _Log(io.FileIO):
    """A file that discards what it cannot write."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)
