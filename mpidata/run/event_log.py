"""Events as JSON lines, and JSON files that a reader never sees half written."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Events", "as_json", "write_json"]

_MOST_WAITING_BYTES = 16 << 20

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Events:
    """The file events.jsonl: one JSON object a line, `{"time": <unix seconds>, "event": "...", ...}`.

    Lines that cannot be written, for example because the disk is full, wait in memory, up to `most_bytes`, and are
    written when there is room again, followed by an event `disk_failed`.

    Parameters
    ----------
    path : Path
        The file; lines are appended to it.
    clock : callable, optional
        Returns the Unix time in seconds.
    most_bytes : int
        Limit of the lines that wait; further lines are lost.

    Attributes
    ----------
    problem : OSError or None
        Why the file cannot be written at present.

    Notes
    -----
    Not thread-safe. `write` only fills a buffer; the lines are in the file after `flush`. No method raises OSError.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, most_bytes: int = _MOST_WAITING_BYTES
    ) -> None:
        self.problem: OSError | None = None
        self._path = path
        self._clock = clock
        self._most_bytes = most_bytes
        self._descriptor = -1
        self._waiting = bytearray()
        self._lost = 0  # lines
        self._failed_at = 0.0

    def write(self, event: str, **values: object) -> None:
        """Add a line. Values must be representable in JSON; NaN and infinities become null."""
        line = {"time": round(self._clock(), 6), "event": event, **values}
        self._add(as_json(line) + "\n")

    def of_numbers(self, event: str, **formats: str) -> Callable[..., None]:
        """Return a function that adds lines of this event as `write` does, but is fast enough for every simulation.

        Its arguments are finite numbers; `formats` has their names and formats, such as `steps="%d"`.
        """
        values = "".join(f', "{name}": {form}' for name, form in formats.items())
        line = f'{{"time": %.6f, "event": "{event}"{values}}}\n'
        return lambda *numbers: self._add(line % (self._clock(), *numbers))

    def note(self, event: str, **values: object) -> None:
        """Add a line, flush, and print it to the log: for rare events."""
        self.write(event, **values)
        self.flush()
        with contextlib.suppress(OSError):
            print(event.replace("_", " "), *(f"{key}={as_json(value)}" for key, value in values.items()), flush=True)

    def flush(self) -> None:
        """Write all lines added so far to the file, as far as possible."""
        try:
            self._write_waiting()
            if self.problem is not None:
                failed, self.problem = self.problem, None
                seconds = round(self._clock() - self._failed_at, 3)
                self.write("disk_failed", reason=failed.strerror, seconds=seconds, lost=self._lost)
                self._lost = 0
                self._write_waiting()
        except OSError as error:
            self._failed_at = self._failed_at if self.problem is not None else self._clock()
            self.problem = error

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _add(self, line: str) -> None:
        if len(self._waiting) < self._most_bytes:
            self._waiting += line.encode(errors="replace")
        else:
            self._lost += 1

    def _write_waiting(self) -> None:
        if self._descriptor < 0:
            self._open()
        while self._waiting:
            written = os.write(self._descriptor, self._waiting)
            del self._waiting[:written]

    def _open(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":  # from a scheduler that was killed while writing
                self._waiting[:0] = b"\n"
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor


def write_json(path: Path, value: object, durable: bool = False) -> None:
    """Write a JSON file atomically: a reader sees the old file or the new one.

    Parameters
    ----------
    path : Path
        The file; replaced by an atomic rename.
    value : object
        Must be representable in JSON, but NaN and infinities become null.
    durable : bool
        Wait until the file is on disk.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(as_json(value) + "\n")
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def as_json(value: object) -> str:
    """Return a value as one line of JSON; NaN and infinities become null."""
    try:
        return _encode(value)
    except ValueError:
        return _encode(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return value
