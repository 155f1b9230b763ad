"""Words for who started the job: those that do not go through the run folder, which may be what cannot be written.

And about ranks that others wait for, which any rank of any host may say, through a log in the run folder.
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
"""Variable that names a file for them: one in memory that `mpidata run` reads, or the launcher's standard error."""

STARTED = '{"event": "start"}'
"""Line that tells that all ranks have joined, where the event of that cannot be written."""


def say_aside(line: str) -> None:
    """Tell who started the job, as far as that can be done, and the log."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError, KeyError):
        descriptor = os.open(os.environ[ASIDE], os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(f"{line}\n".encode(errors="replace"))


def said_aside(aside: Path) -> list[str]:
    """Read the lines that were said aside; none where the file cannot be read."""
    try:
        return aside.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def read_summary(aside: Path) -> dict[str, Any] | None:
    """Find the summary of a job among the lines that its scheduler said aside; None if it is not there."""
    for line in said_aside(aside):
        if line.startswith("{") and line != STARTED:
            with contextlib.suppress(ValueError):
                found: dict[str, Any] = json.loads(line)
                return found
    return None


def say_late(run: Path, sentence: str) -> None:
    """Have `mpidata run` show a sentence, and print it to this rank's log."""
    with contextlib.suppress(OSError, ValueError):
        print(f"mpidata: {sentence}", file=sys.stderr, flush=True)
    append(RunFolder(run).idle_log, f"mpidata: {sentence}\n")


def append(path: Path, text: str) -> None:
    """Add to a file that other ranks write to as well; where that cannot be done, the log has it."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(file, text.encode(errors="replace"))
        finally:
            os.close(file)
