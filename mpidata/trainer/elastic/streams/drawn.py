"""Which samples of the stream the trainers make a step with: all of them know it when the step counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.trainer.elastic.attempt import Attempt

__all__ = ["Drawn"]

_Samples = NDArray[np.int64]


class Drawn:
    """What this trainer has drawn from the stream since the last step that counted.

    Parameters
    ----------
    trained : callable
        Told of the samples of each step that counts, int64, shape (n, 2): simulation and step of those of all trainers
        that took part; and of these trainers, int64, shape (m, 2): the rank at the start, and how many are its.

    Notes
    -----
    For the thread of the training script.
    """

    def __init__(self, trained: Callable[[_Samples, _Samples], object]) -> None:
        self.room = 1  # samples that travel with each step; what is more takes one message more
        self._trained = trained
        self._most = 0
        self._drawn: list[_Samples] = []
        self._own: _Samples = np.empty(0, np.int64)
        self._all: _Samples = np.empty((0, 1), np.int64)
        self._counts: _Samples = np.empty((0, 2), np.int64)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was drawn since the last step that counted."""
        return not self._drawn

    def take(self, batch: dict[str, Any]) -> None:
        """Note a batch, or single sample, that was drawn; a window goes by its first step."""
        simulation, step = (np.asarray(batch[name], np.int64) for name in ("simulation", "step"))
        first = step[..., 0] if step.ndim > simulation.ndim else step
        self._drawn.append(np.stack([np.atleast_1d(simulation), np.atleast_1d(first)], 1))

    def take_out(self) -> _Samples:
        """Give what was drawn, shape (n, 2), and keep it no more: it counts elsewhere."""
        samples = np.concatenate([np.empty((0, 2), np.int64), *self._drawn])
        self._drawn.clear()
        return samples

    def send(self, attempt: Attempt, trainers: Sequence[int]) -> None:
        """Begin to exchange them with these; as many as there is room for."""
        samples = np.concatenate([np.empty((0, 2), np.int64), *self._drawn])
        self._own = np.full(1 + 2 * self.room, len(samples), np.int64)
        self._own[1:].reshape(-1, 2)[: len(samples)] = samples[: self.room]
        self._all = np.zeros((len(trainers), len(self._own)), np.int64)
        self._counts = np.array([trainers, trainers], np.int64).T.copy()
        attempt.post(attempt.communicator.Iallgather, self._own, self._all)

    def send_rest(self, attempt: Attempt) -> bool:
        """Exchange all of them where there was not room for some trainer's; False where that has failed."""
        counts = 2 * self._all[:, 0]
        self._counts[:, 1] = self._all[:, 0]
        self._most = int(self._all[:, 0].max(initial=0))
        if self._most > self.room:
            own = np.concatenate([np.empty((0, 2), np.int64), *self._drawn])
            everything = np.full(1 + int(counts.sum()), counts.sum() // 2, np.int64)
            attempt.post(attempt.communicator.Iallgatherv, own, [everything[1:], counts.tolist()])
            self._all = everything.reshape(1, -1)
            return attempt.wait()
        return True

    def count(self) -> None:
        """Take in that the step counts."""
        self._drawn.clear()
        self.room = max(self.room, self._most)  # alike on all, as all that live have had the same
        self._trained(_joined(of[1 : 1 + 2 * int(of[0])] for of in self._all), self._counts)


def _joined(parts: Iterable[_Samples]) -> _Samples:
    return np.ascontiguousarray(np.concatenate([np.empty(0, np.int64), *parts]).reshape(-1, 2))
