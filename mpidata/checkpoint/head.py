"""The numbers of a trainer's file in a checkpoint: its attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["MOST", "Head", "read_head"]

MOST = 1 << 40
"""The limit of each count; a larger one means a damaged file."""


@dataclasses.dataclass(frozen=True)
class Head:
    """Numbers of a trainer's snapshot and of its job; `mpidata_snapshot` of snapshot.h has most of them.

    `plan_capacity` is that of the job file, `simulations` counts those trained on; `samples` describes samples, see
    `samples_of`; `by_step`: the ledger's bits are those of an elastic job, of all steps.
    """

    number: int
    trainer: int
    trainers: int
    batch: int
    count: tuple[int, ...]
    unseen: int
    next_retired: int
    capacity: int
    plan_capacity: int
    added: int
    random: tuple[int, ...]
    statistics: tuple[int, ...]
    policy: str
    simulations: int
    batches_of_all: int
    samples: tuple[int, ...] = (1, 1, 1)
    capacity_in_bytes: int = 0
    by_step: int = 0
    ranks_per_replica: int = 1

    @property
    def span(self) -> int:
        """Steps from the first one of a sample to its last."""
        window, stride, _ = self.samples
        return (window - 1) * stride


def read_head(attributes: Mapping[str, Any]) -> Head:
    """Read and check the attributes; raises ValueError if they make no sense."""
    names = {f.name: str(f.type) for f in dataclasses.fields(Head)}
    new = {"batches_of_all", "samples", "capacity_in_bytes", "by_step", "ranks_per_replica"}
    new -= set(attributes)  # these are missing in files of older versions
    values = {name: _plain(attributes[name], kind, name) for name, kind in names.items() if name not in new}
    head = Head(**{"batches_of_all": values["batch"] * values["trainers"], **values})
    _check(head)
    return head


def _check(head: Head) -> None:
    places = head.count
    lengths = (len(places), len(head.random), len(head.samples), max(len(head.statistics), 8))
    if lengths != (4, 4, 3, 8) or min(head.samples) < 1 or not all(0 <= count <= MOST for count in places):
        raise ValueError("its attributes count, random, samples or statistics make no sense")
    numbers = (head.batch, head.unseen, head.next_retired, head.added, head.batches_of_all)
    unseen = head.unseen if head.policy == "reservoir" else 0
    most = places[0] if head.capacity_in_bytes else head.capacity
    if not (0 <= min(numbers) and max(numbers) < 1 << 62 and unseen <= places[0] <= most <= MOST):
        raise ValueError("its numbers of samples and batches make no sense")
    capacities, above = (head.plan_capacity, head.capacity), 1 << 62 if head.capacity_in_bytes else MOST + 1
    if not (0 <= head.trainer < head.trainers <= MOST and 0 < min(capacities) <= max(capacities) < above):
        raise ValueError("its numbers of trainers, or its capacity, make no sense")


def _plain(value: Any, kind: str, name: str) -> Any:
    """Convert an attribute to a Python value; `kind` is str, int or tuple[int, ...]."""
    plain: Any
    if kind == "str":
        plain = value if isinstance(value, str) else None
    elif kind == "int":
        plain = int(value) if isinstance(value, np.integer) else None
    else:
        ok = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu"
        plain = tuple(map(int, value)) if ok else None
    if plain is None:
        raise ValueError(f"its attribute {name} is {value!r:.80}")
    return plain
