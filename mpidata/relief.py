"""When to let a full trainer take more than its capacity because another one starves.

Trainers in DDP wait for one another at every batch. If one of them lacks the samples for its next batch while every
group is held up by another one whose buffer is full, nothing moves any more, although nobody is slow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mpidata.summary import DRAWN, RECEIVED

__all__ = ["Relief"]

_TWICE = 2
_PATIENCE = 4.0
_USUAL_AT_FIRST_S = 0.5


@dataclasses.dataclass
class _Trainer:
    received: int = 0
    drawn: int = 0
    granted: int = 0
    starved: int = 0
    full: int = 0
    drawn_at: float | None = None
    usual: float = _USUAL_AT_FIRST_S
    relieved: int = 0


class Relief:
    """Watches the trainers' statuses for one that starves while another one is full.

    A trainer counts as starved, or as full, when it says so in two consecutive statuses between which it has neither
    received nor drawn anything. One that is merely slow is full as well: so a full trainer is left alone until its last
    draw is four times as long ago as its draws usually are apart. Relief starts with a small share of the capacity and
    doubles until the trainer draws again. Over a run it stays within `most`: a trainer's buffer does not shrink again.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    capacity : int
        Of one trainer's buffer, in samples.
    most : int
        Samples that a trainer takes beyond its capacity at most.

    Notes
    -----
    For one thread.
    """

    def __init__(self, trainers: int, capacity: int, most: int) -> None:
        self._least = max(1, capacity // 20)
        self._most = most
        self._trainers = [_Trainer() for _ in range(trainers)]

    def status(
        self, trainer: int, now: float, starved: bool, full: bool, statistics: Sequence[int]
    ) -> list[tuple[int, int, int]]:
        """Take a trainer's status, of time `now` in seconds, and say whom to relieve.

        Parameters
        ----------
        trainer : int
            Whose status it is.
        now : float
            When it came, in seconds.
        starved, full : bool
            Whether a draw waits for samples, and whether samples wait for room in the buffer.
        statistics : sequence of int
            In the order of mpidata_statistics.

        Returns
        -------
        list of (int, int, int)
            A full trainer, the samples it shall take beyond its capacity, and the trainer that starves. Mostly empty.
        """
        known = self._trainers[trainer]
        received, drawn = statistics[RECEIVED], statistics[DRAWN]
        moved = received != known.received or drawn != known.drawn
        if drawn != known.drawn:
            self._drew(known, now, drawn - known.drawn)
        elif full and known.drawn_at is None:
            known.drawn_at = now
        known.received, known.drawn = received, drawn
        known.starved = 0 if not starved else 1 if moved else known.starved + 1
        known.full = 0 if not full else 1 if moved else known.full + 1
        return self._relieve(now) if known.starved >= _TWICE or known.full >= _TWICE else []

    def _drew(self, known: _Trainer, now: float, draws: int) -> None:
        if known.drawn_at is not None and not known.relieved:
            known.usual = (known.usual + (now - known.drawn_at) / draws) / 2
        known.drawn_at = now
        known.relieved = 0

    def _relieve(self, now: float) -> list[tuple[int, int, int]]:
        starved = next((i for i, known in enumerate(self._trainers) if known.starved >= _TWICE), None)
        if starved is None:
            return []
        found = []
        for trainer, known in enumerate(self._trainers):
            if known.full < _TWICE or known.drawn_at is None or now - known.drawn_at < _PATIENCE * known.usual:
                continue
            samples = min(max(self._least, known.relieved), self._most - known.granted)
            if samples > 0:
                known.relieved += samples
                known.granted += samples
                known.full = 0
                found.append((trainer, samples, starved))
        return found
