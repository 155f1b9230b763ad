"""Waits of the tests: until something happens, and for a time in which nothing may happen."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    timeout_s: float = 20,
    *,
    every_s: float = 0.005,
    alive: "subprocess.Popen[Any] | None" = None,
    told: Callable[[], object] = lambda: "it did not happen",
) -> T:
    """Wait until the condition, checked every `every_s` seconds, is true, and return its value.

    The process `alive` may not end meanwhile. `told` returns the message of a failure.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        # Looked at first: what ends the wait may have come just before the end of the process or of the time.
        over = time.monotonic() > deadline or (alive is not None and alive.poll() is not None)
        if value := condition():
            return value
        assert not over, told()
        time.sleep(every_s)


def stays(condition: Callable[[], object], seconds: float) -> bool:
    """Return whether the condition stays true for these seconds."""
    end = time.monotonic() + seconds
    while (held := bool(condition())) and time.monotonic() < end:
        time.sleep(0.005)
    return held


def watched_by(pid: int) -> int:
    """Return how many processes a process watches: those for which it has a descriptor."""
    watched = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            watched += "pidfd" in os.readlink(entry)
    return watched
