"""Messages to the process that started the job, not through the run folder, which may be unwritable.

Also messages about ranks that others wait for, which any rank on any host may write to a log in the run folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from mpidata.run.folder import RunFolder

__all__ = ["ASIDE", "STARTED", "append", "read_summary", "said_aside", "say_aside", "say_late"]

ASIDE = "MPIDATA_ASIDE"
"""Variable that names a file for these: one in memory that `mpidata run` reads, or the launcher's standard error."""

STARTED = '{"event": "start"}'
"""Line which reports that all ranks have joined, if that event cannot be written."""


def say_aside(line: str) -> None:
    """Send a line to the process that started the job, if possible, and print it to the log."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError, KeyError):
        descriptor = os.open(os.environ[ASIDE], os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(f"{line}\n".encode(errors="replace"))


def said_aside(aside: Path) -> list[str]:
    """Read the lines of `say_aside`; none if the file cannot be read."""
    try:
        return aside.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def read_summary(aside: Path) -> dict[str, Any] | None:
    """Find the summary of a job among its scheduler's lines of `say_aside`; None if there is none."""
    for line in said_aside(aside):
        if line.startswith("{") and line != STARTED:
            with contextlib.suppress(ValueError):
                found: dict[str, Any] = json.loads(line)
                return found
    return None


def say_late(run: Path, sentence: str) -> None:
    """Let `mpidata run` show a sentence, and print it to this rank's log."""
    with contextlib.suppress(OSError, ValueError):
        print(f"mpidata: {sentence}", file=sys.stderr, flush=True)
    append(RunFolder(run).idle_log, f"mpidata: {sentence}\n")


def append(path: Path, text: str) -> None:
    """Append to a file to which other ranks also write; if that fails, the text is only in the log."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(file, text.encode(errors="replace"))
        finally:
            os.close(file)
