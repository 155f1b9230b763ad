"""The samples of the stream that a step uses: all trainers know them when the step counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.trainer.elastic.attempt import Attempt

__all__ = ["Drawn"]

_Samples = NDArray[np.int64]


class Drawn:
    """The samples that this trainer has drawn from the stream since the last step that counted.

    Parameters
    ----------
    trained : callable
        Called for each step that counts with the samples of all trainers that took part, int64, shape (n, 2):
        simulation and step; and with these trainers, int64, shape (m, 2): initial rank and number of samples.

    Notes
    -----
    For the thread of the training script.
    """

    def __init__(self, trained: Callable[[_Samples, _Samples], object]) -> None:
        self.room = 1  # samples that are sent with each step; further ones need one more message
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
        """Note a batch or single sample that was drawn; a window is identified by its first step."""
        simulation, step = (np.asarray(batch[name], np.int64) for name in ("simulation", "step"))
        first = step[..., 0] if step.ndim > simulation.ndim else step
        self._drawn.append(np.stack([np.atleast_1d(simulation), np.atleast_1d(first)], 1))

    def take_out(self) -> _Samples:
        """Return and forget what was drawn, shape (n, 2): it is counted elsewhere."""
        samples = np.concatenate([np.empty((0, 2), np.int64), *self._drawn])
        self._drawn.clear()
        return samples

    def send(self, attempt: Attempt, trainers: Sequence[int]) -> None:
        """Start to exchange the samples with these trainers, as many as there is room for."""
        samples = np.concatenate([np.empty((0, 2), np.int64), *self._drawn])
        self._own = np.full(1 + 2 * self.room, len(samples), np.int64)
        self._own[1:].reshape(-1, 2)[: len(samples)] = samples[: self.room]
        self._all = np.zeros((len(trainers), len(self._own)), np.int64)
        self._counts = np.array([trainers, trainers], np.int64).T.copy()
        attempt.post(attempt.communicator.Iallgather, self._own, self._all)

    def send_rest(self, attempt: Attempt) -> bool:
        """Exchange all samples if the room did not suffice for some trainer; False if that failed."""
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
        """Note that the step counts."""
        self._drawn.clear()
        self.room = max(self.room, self._most)  # the same on all, because all living trainers received the same
        self._trained(_joined(of[1 : 1 + 2 * int(of[0])] for of in self._all), self._counts)


def _joined(parts: Iterable[_Samples]) -> _Samples:
    return np.ascontiguousarray(np.concatenate([np.empty(0, np.int64), *parts]).reshape(-1, 2))
