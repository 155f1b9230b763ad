"""The positions of trainers and the samples they have trained on, which server 0 keeps for the case that one dies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["TrainedSamples", "pack", "unpack"]

_MANY = 1 << 18

_Numbers = NDArray[np.int64]


def pack(place: _Numbers, samples: _Numbers) -> NDArray[np.uint8]:
    """Return the end of a push: the position of its trainer, and the stream's samples in it, shape (n, 2)."""
    return np.concatenate([place.reshape(-1), samples.reshape(-1), [len(samples)]]).astype(np.int64).view(np.uint8)


def unpack(push: NDArray[np.uint8], size: int) -> tuple[_Numbers, _Numbers]:
    """Read the result of `pack` at the end of a push; the position has `size` bytes."""
    (count,) = np.frombuffer(push[-8:].tobytes(), np.int64)
    behind = np.frombuffer(push[len(push) - 8 - 16 * int(count) - size : len(push) - 8].tobytes(), np.int64)
    return behind[: size // 8], behind[size // 8 :].reshape(-1, 2)


class TrainedSamples:
    """The stream's samples of the pushes that count, for each trainer those that it does not know of yet.

    Parameters
    ----------
    trainers, spares : int
        Numbers of trainers and of spares, which are the last trainers and wait.
    """

    def __init__(self, trainers: int, spares: int = 0) -> None:
        self._trainers, self._changes = trainers, 0
        self._waiting = set(range(trainers - spares, trainers))
        self._untold = {trainer: _Untold(trainers) for trainer in range(trainers - spares)}

    def change(self, number: int) -> None:
        """Note a change among those that train, by its number: a spare may have a place, and know what they know."""
        if number > self._changes:
            self._changes = number
            self._untold |= {spare: _Untold(self._trainers) for spare in self._waiting}

    def joined(self, trainer: int) -> None:
        """Note that a trainer has a place."""
        self._waiting.discard(trainer)

    def add(self, trainer: int, samples: _Numbers) -> None:
        """Note that a push of a trainer counts, with these samples, shape (n, 2): simulation and step."""
        for untold in self._untold.values():
            untold.add(trainer, samples)

    def take(self, trainer: int) -> tuple[_Numbers, _Numbers]:
        """Return the samples that a trainer does not know of, and how many each trainer has drawn, (trainers, 2)."""
        untold = self._untold.get(trainer, _Untold(self._trainers))  # it may have died since its request
        if trainer in self._untold:
            self._untold[trainer] = _Untold(self._trainers)
        return untold.samples(), np.stack([np.arange(self._trainers), untold.drawn], 1)

    def forget(self, trainer: int) -> None:
        """Keep no more samples for a trainer that has died."""
        self._waiting.discard(trainer)
        self._untold.pop(trainer, None)


class _Untold:
    """The samples that one trainer does not know of yet."""

    def __init__(self, trainers: int) -> None:
        self.drawn = np.zeros(trainers, np.int64)
        self._samples = [np.empty((0, 2), np.int64)]
        self._size, self._most = 0, _MANY

    def add(self, trainer: int, samples: _Numbers) -> None:
        self.drawn[trainer] += len(samples)
        self._samples.append(samples)
        self._size += len(samples)
        if self._size > self._most:  # a reservoir draws each of them many times
            self._samples = [np.unique(self.samples(), axis=0)]
            self._size = len(self._samples[0])
            self._most = max(_MANY, 2 * self._size)

    def samples(self) -> _Numbers:
        return np.concatenate(self._samples)
