"""Measurements in rounds, stored in a file after each one, so that an interrupted run can resume."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchmarks.contender import ROOT, BenchmarkError
from mpidata.run.own_files import write_text

__all__ = ["Due", "forget", "keep", "key_of", "resume", "sentence", "sources", "take", "turned"]

T = TypeVar("T")

_SOURCES = ["benchmarks", "c_api", "launch", "mpidata"]
_KINDS = {".c", ".h", ".map", ".py", ".sh", ".txt"}


def key_of(seconds: float, machine: Mapping[str, str]) -> str:
    """Return a digest of what comparable measurements share: sources, machine and seconds per measurement."""
    same = (sources(), seconds, {**machine, "load before": ""})
    return hashlib.sha256(repr(same).encode()).hexdigest()


def sources() -> str:
    """Return a digest of the sources of mpidata and of the benchmarks."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _KINDS and path.is_file():
                digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def resume(path: Path, key: str) -> dict[str, Any]:
    """Return the contents of the file if they have this key, else an empty dict."""
    if not path.exists():
        return {}
    contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if contents.get("key") == key:
        return contents
    if "key" in contents:
        print(f"{path} was measured by other sources, on another machine or with other seconds, so it starts over.")
    return {}


def keep(path: Path, contents: Mapping[str, Any]) -> None:
    """Write the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(contents, indent=1, ensure_ascii=False) + "\n")


def forget(path: Path) -> None:
    """Mark results as not resumable; they stay until a new measurement replaces them."""
    if path.exists():
        contents = json.loads(path.read_text(encoding="utf-8"))
        keep(path, {name: value for name, value in contents.items() if name != "key"})


class Due(NamedTuple):
    """A measurement to make: its name, and the call that makes and stores it; this may raise BenchmarkError."""

    name: str
    measure: Callable[[], None]


def take(due: Sequence[Sequence[Due]], save: Callable[[Sequence[str]], None], render: Callable[[], None]) -> list[str]:
    """Make what is due, round after round; return what failed.

    Parameters
    ----------
    due : sequence of sequences of Due
        The measurements by round.
    save : callable
        Called after each measurement with what is missing: the failed ones, and how many are left.
    render : callable
        Called after each round in which something was measured, or once if nothing was due.
    """
    failed: list[str] = []
    left = sum(map(len, due))
    for round_ in due:
        for one in round_:
            try:
                one.measure()
            except BenchmarkError as error:
                failed.append(f"{one.name}: failed")
                print(f"{failed[-1]}: {error}", file=sys.stderr, flush=True)
            left -= 1
            save([*failed, f"{left} measurements: not made yet"] if left else failed)
        if round_:
            render()
    if not any(due):  # a kill may have come before the page was written
        render()
    return failed


def turned(items: Sequence[T], number: int) -> list[T]:
    """Return the items in the order of a round: each round starts with a different one."""
    first = number % max(1, len(items))
    return [*items[first:], *items[:first]]


def sentence(rounds: int, seconds: float) -> str:
    """Return a sentence for the page."""
    return f"{rounds} {'round' if rounds == 1 else 'rounds'} of {seconds:g} s each, alternated."
