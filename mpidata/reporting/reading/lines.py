"""What the lines of metrics.jsonl show together."""

from __future__ import annotations

from typing import Any

__all__ = ["middle_of", "samples_of", "waited_of"]


def middle_of(lines: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Find the lines at 20 and 80 % of the time in which samples arrived, since the last start of the run."""
    lines = lines[max((i for i in range(1, len(lines)) if _begins(lines[i - 1], lines[i])), default=0) :]
    came = [i for i, line in enumerate(lines) if i and samples_of(line) > samples_of(lines[i - 1])]
    if len(came) < 2:
        return None
    low, high = lines[came[0]]["seconds"], lines[came[-1]]["seconds"]
    inside = [line for line in lines if low + 0.2 * (high - low) <= line["seconds"] <= low + 0.8 * (high - low)]
    first, last = (inside[0], inside[-1]) if len(inside) > 1 else (lines[came[0]], lines[came[-1]])
    return (first, last) if last["seconds"] > first["seconds"] else None


def _begins(before: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether the run was started between these lines: fewer batches were drawn, or by another number of trainers."""
    return sum(line["drawn"]) < sum(before["drawn"]) or len(line["drawn"]) != len(before["drawn"])


def waited_of(line: dict[str, Any]) -> list[float]:
    """Return the seconds for which each trainer has waited for data from solvers or loaders."""
    loaded = _loaded(line, "wait_s") or [0.0] * len(line["waited_s"])
    return [a + b for a, b in zip(line["waited_s"], loaded, strict=False)]


def samples_of(line: dict[str, Any]) -> int:
    """Return the number of samples that the trainers have received from solvers or loaders."""
    return int(sum(line["received"]) + sum(_loaded(line, "samples")))


def _loaded(line: dict[str, Any], name: str) -> list[Any]:
    found: list[Any] = line.get("loaded", {}).get(name, [])
    return found
