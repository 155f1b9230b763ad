"""Buffer policies that handle sample numbers only, to try them before they are implemented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
# Number of random candidates for each eviction, and for each sample of a batch.
_CANDIDATES, _DRAWN_OF = 8, 4


class Reservoir:
    """Draws any sample in the buffer; a new one replaces one that was drawn, or waits.

    Parameters
    ----------
    capacity, repeats : int
        The buffer's capacity, and how often a sample is drawn on average.
    simulations : ndarray of int, shape (n,)
        The simulation of each sample.
    random : numpy.random.Generator
    choose : callable
        Called with the candidates for eviction and the buffer; returns the index of the one to evict. Unused by firo.
    """

    def __init__(
        self,
        capacity: int,
        repeats: int,
        simulations: Ids,
        random: np.random.Generator,
        choose: Callable[[Ids, Reservoir], Any] = lambda candidates, buffer: 0,
    ) -> None:
        self.capacity, self.repeats, self.simulations = capacity, repeats, simulations
        self.draws = np.zeros(len(simulations), np.int64)
        self.of_simulation = np.zeros(int(simulations.max()) + 1, np.int64)
        self._random, self._choose = random, choose
        self._there = np.empty(capacity, np.int64)
        self._count, self._unseen = 0, 0  # samples that were never drawn come first
        self._ended = False

    def full(self) -> bool:
        """Return whether no sample can be added."""
        return self._count == self.capacity == self._unseen

    def ready(self, batch: int) -> bool:
        """Return whether a batch can be drawn: before the end, from 500 samples or half the capacity on."""
        return self._count >= batch and (self._ended or self._count >= min(500, self.capacity // 2))

    def add(self, sample: int) -> None:
        """Add a sample; there must be room."""
        place = self._count
        if self._count == self.capacity:
            candidates = self._random.integers(self._unseen, self._count, _CANDIDATES)
            place = int(candidates[int(self._choose(self._there[candidates], self))])
            self.of_simulation[self.simulations[self._there[place]]] -= 1
        else:
            self._count += 1
        self._there[place] = self._there[self._unseen]
        self._there[self._unseen] = sample
        self._unseen += 1
        self.of_simulation[self.simulations[sample]] += 1

    def draw(self, batch: int) -> Ids:
        """Draw a batch of different samples."""
        drawn = np.empty(batch, np.int64)
        places = self._places(batch)
        for i, place in enumerate(sorted(places.tolist(), reverse=True)):
            drawn[i] = sample = self._there[place]
            if place < self._unseen:
                self._unseen -= 1
                self._there[place], self._there[self._unseen] = self._there[self._unseen], sample
        self.draws[drawn] += 1
        return drawn

    def _places(self, batch: int) -> Ids:
        return self._random.choice(self._count, batch, replace=False, shuffle=False)

    def end(self) -> None:
        """Note that no more samples come."""
        self._ended = True


class Even(Reservoir):
    """Draws the least drawn of four times as many random samples as a batch has."""

    def _places(self, batch: int) -> Ids:
        places = self._random.choice(self._count, min(self._count, _DRAWN_OF * batch), replace=False)
        return places[np.argsort(self.draws[self._there[places]], kind="stable")[:batch]]


class Firo(Reservoir):
    """Draws any sample in the buffer, and removes it after `repeats` draws."""

    def full(self) -> bool:
        """Return whether no sample can be added."""
        return self._count == self.capacity

    def ready(self, batch: int) -> bool:
        """Return whether a batch can be drawn: before the end, from nine tenths of the capacity on."""
        return self._count >= batch if self._ended else self._count >= 0.9 * self.capacity

    def draw(self, batch: int) -> Ids:
        """Draw a batch of different samples."""
        places = self._places(batch)
        drawn = self._there[places]
        self.draws[drawn] += 1
        for place in sorted(places[self.draws[drawn] == self.repeats].tolist(), reverse=True):
            self._count -= 1
            self._there[place] = self._there[self._count]
        self._unseen = 0
        return drawn


_EVICTIONS = {
    "random": lambda candidates, buffer: 0,
    "most drawn": lambda candidates, buffer: buffer.draws[candidates].argmax(),
    "oldest drawn": lambda candidates, buffer: candidates.argmin(),
    "least drawn first": lambda candidates, buffer: buffer.draws[candidates].argmax(),
    "by simulation": lambda candidates, buffer: buffer.of_simulation[buffer.simulations[candidates]].argmax(),
}


def make_buffer(policy: str, part: float, repeats: int, simulations: Ids, random: np.random.Generator) -> Reservoir:
    """Return a buffer with a policy, whose capacity is a part of all samples."""
    capacity = round(part * len(simulations))
    if policy == "firo":
        return Firo(capacity, repeats, simulations, random)
    kind = Even if policy == "least drawn first" else Reservoir
    return kind(capacity, repeats, simulations, random, _EVICTIONS[policy])
