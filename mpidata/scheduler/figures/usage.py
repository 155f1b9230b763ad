"""Memory and processor time by role."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Any

from mpidata.native.event import Usage

__all__ = ["used"]


def used(trainers: Sequence[Usage], groups: Sequence[Usage]) -> dict[str, Any]:
    """Return the entries `memory_mb` and `cpu_s` of a line of metrics.jsonl; the scheduler is this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    memory = {
        "scheduler": round(own.ru_maxrss / 1e3, 1),
        "trainers": [round(usage.memory_kb / 1e3, 1) for usage in trainers],
        "groups": round(max((usage.memory_kb for usage in groups), default=0) / 1e3, 1),
    }
    cpu = {
        "scheduler": round(own.ru_utime + own.ru_stime, 3),
        "trainers": [round(usage.cpu_us / 1e6, 3) for usage in trainers],
        "groups": round(sum(usage.cpu_us for usage in groups) / 1e6, 3),
    }
    return {"memory_mb": memory, "cpu_s": cpu}
