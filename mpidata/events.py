"""What happened, as JSON lines, and JSON files that a reader never sees half written."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Events", "write_json"]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Events:
    """The file events.jsonl: one JSON object a line, `{"time": <unix seconds>, "event": "...", ...}`.

    Parameters
    ----------
    path : Path
        The file; lines are appended to it.
    clock : callable, optional
        Gives the unix time in seconds.

    Notes
    -----
    For one thread. `write` only fills a buffer; the lines are in the file after `flush`.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._file = open(path, "a", encoding="utf-8", buffering=1 << 16)  # noqa: SIM115

    def write(self, event: str, **values: object) -> None:
        """Add a line. Values are what JSON knows; NaN and infinities become null."""
        line = {"time": round(self._clock(), 6), "event": event, **values}
        self._file.write(_text(line) + "\n")

    def write_numbers(self, event: str, **numbers: int) -> None:
        """Add a line whose values are integers: as `write`, but cheap enough for every simulation."""
        values = "".join([f', "{name}": {number}' for name, number in numbers.items()])
        self._file.write(f'{{"time": {self._clock():.6f}, "event": "{event}"{values}}}\n')

    def note(self, event: str, **values: object) -> None:
        """Add a line, bring it into the file, and print it for the log: for what is rare."""
        self.write(event, **values)
        self.flush()
        print(event.replace("_", " "), *(f"{key}={_text(value)}" for key, value in values.items()), flush=True)

    def flush(self) -> None:
        """Bring all lines written so far into the file."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


def write_json(path: Path, value: object, durable: bool = False) -> None:
    """Write a JSON file so that a reader sees the old one or the new one, never half of it.

    Parameters
    ----------
    path : Path
        The file; replaced by an atomic rename.
    value : object
        What JSON knows. NaN and infinities become null: JSON has no word for them.
    durable : bool
        Wait until the disk has it.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    beside = path.with_name(f".{path.name}.new")
    with open(beside, "w", encoding="utf-8") as file:
        file.write(_text(value) + "\n")
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(beside, path)


def _text(value: object) -> str:
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
