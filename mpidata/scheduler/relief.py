"""When a full trainer may take more than its capacity because another one starves.

Trainers in DDP wait for one another at every batch. If one of them lacks the samples for its next batch while every
group is blocked by another one whose buffer is full, the job is deadlocked, although no rank is slow. That happens
if the simulations in one trainer's share have many more steps than those in another's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mpidata.scheduler.figures.summary import CAPACITY, DRAWN, RECEIVED

if TYPE_CHECKING:
    from mpidata.scheduler.figures.run_output import RunOutput
    from mpidata.scheduler.messages import Messages

__all__ = ["Relief", "relieve"]

_TWICE = 2
_SHARE = 4


@dataclasses.dataclass
class _Trainer:
    received: int = 0
    drawn: int = 0
    starved: int = 0
    full: int = 0
    capacity: int = 0


class Relief:
    """Watches the trainers' statuses for one that starves while another one is full.

    A trainer counts as starved, or as full, if it reports that in two consecutive statuses between which it has
    neither received nor drawn anything. A full one then gets room for a quarter of its present capacity, repeatedly
    until the other one has its samples: its memory grows by what the shares differ by, plus at most a quarter of it.

    A trainer that is merely slow is also full, but does not starve another: no trainer is promised more batches ahead
    of the others than half its capacity.

    Parameters
    ----------
    trainers : int
        Number of trainers.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, trainers: int) -> None:
        self._trainers = [_Trainer() for _ in range(trainers)]

    def status(
        self, trainer: int, starved: bool, full: bool, statistics: Sequence[int], waits: bool = False
    ) -> list[tuple[int, int, int | None]]:
        """Process a trainer's status, and return which trainers to relieve.

        Parameters
        ----------
        trainer : int
            The trainer that sent the status.
        starved, full : bool
            Whether a draw waits for samples, and whether the buffer has no room.
        statistics : sequence of int
            In the order of mpidata_statistics.
        waits : bool
            Whether a validation simulation, without which no trainer may draw, waits for a group.

        Returns
        -------
        list of (int, int, int or None)
            A full trainer, the samples (or bytes) that it may take beyond its capacity, and the starving trainer, if
            there is one. Usually empty.
        """
        known = self._trainers[trainer]
        received, drawn = statistics[RECEIVED], statistics[DRAWN]
        moved = received != known.received or drawn != known.drawn
        known.received, known.drawn, known.capacity = received, drawn, statistics[CAPACITY]
        known.starved = 0 if not starved else 1 if moved else known.starved + 1
        known.full = 0 if not full else 1 if moved else known.full + 1
        starving = next((i for i, other in enumerate(self._trainers) if other.starved >= _TWICE), None)
        if starving is None and not waits:
            return []
        return [(i, self._room(i), starving) for i, other in enumerate(self._trainers) if other.full >= _TWICE]

    def left(self, trainer: int) -> None:
        """Forget a trainer that has died."""
        self._trainers[trainer] = _Trainer()

    def _room(self, trainer: int) -> int:
        self._trainers[trainer].full = 0
        return max(1, self._trainers[trainer].capacity // _SHARE)


def relieve(found: Iterable[tuple[int, int, int | None]], messages: Messages, output: RunOutput, unit: str) -> None:
    """Give full trainers the room that `Relief.status` has returned, in samples or bytes, and write why."""
    for trainer, room, other in found:
        messages.relieve(trainer, room)
        what = "a validation simulation is to be run again" if other is None else f"trainer {other} starves"
        reason = f"{what} while the groups wait for room on trainer {trainer}"
        output.note("relief", trainer=trainer, **{unit: room}, reason=reason)
