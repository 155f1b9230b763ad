"""One pass over a dataset on loaders, whatever its class.

As for the nodes of torchdata, `iter()` starts a pass, the next one or the one that continues from a loaded state.
`next()` returns a batch, and at the end raises StopIteration on every call. A state is that after the last returned
batch; after the last batch of an epoch it is the beginning of the next epoch.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from mpidata.datasets.epochs.accelerate_pass import AcceleratePass
from mpidata.datasets.epochs.position import Pass
from mpidata.device.prefetch import Fetched, Prefetcher
from mpidata.loading.figures import Tally
from mpidata.loading.turns import Turn

__all__ = ["Iteration", "Ready"]

Ready = tuple[int, int, Callable[[], Any]]
"""A batch that has arrived: its number in the epoch, its number of samples, and a function that makes it."""


class Iteration(ABC, Iterator[Any]):
    """The batches of one epoch.

    Parameters
    ----------
    length : callable
        Returns the number of batches of a whole epoch; may raise TypeError.
    place : Pass
        Gets the number of each batch just before it is returned, and None after the last.
    tally : Tally
        Counts batches and waits.
    turn : Turn
        Of this iteration.
    accelerate : AcceleratePass, optional
        Announces the last batch, if the dataset was prepared by `accelerator.prepare`.
    when_out : callable, optional
        Called when there is no further batch; it may add some to the epoch, and is called again if it returns False
        and has added none. Without it the end is announced with the last batch.
    prefetcher : Prefetcher, optional
        Of this iteration, if its batches go to a device.
    """

    def __init__(
        self,
        length: Callable[[], int],
        place: Pass,
        tally: Tally,
        turn: Turn | None,
        accelerate: AcceleratePass | None = None,
        when_out: Callable[[], bool] | None = None,
        prefetcher: Prefetcher[tuple[int, int]] | None = None,
    ) -> None:
        self._length, self._place, self._tally, self._turn = length, place, tally, turn
        self._accelerate, self._when_out, self._prefetcher = accelerate, when_out, prefetcher
        self._counted = self._ended = self._over = False

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch, as torch's iterators do."""
        return self._length()

    def __next__(self) -> Any:
        """Wait for a batch; raises an exception of the dataset, or RuntimeError after the timeout."""
        if self._when_out is not None and not self._over:
            while not self.has_more() and not self._when_out():
                pass
        if self._over or not self._goes_on():
            self._end()
            raise StopIteration
        if self._accelerate is not None:
            self._accelerate.begin()
        if self._turn is not None and not self._counted:
            self._turn.next()
        self._counted = True  # also if the wait is repeated
        begun = time.monotonic()
        number, samples, make = self.wait() if self._prefetcher is None else self._prefetched(self._prefetcher)
        self._counted = False
        self._place.given(number)
        self._tally.batch(samples, time.monotonic() - begun)
        self.ask()
        if self._when_out is None and not self._goes_on():
            self._say_ended()
        batch = make()
        if self._turn is not None:
            self._turn.given(samples)
        return batch

    @abstractmethod
    def has_more(self) -> bool:
        """Whether there is another batch. Does not block."""

    @abstractmethod
    def wait(self) -> Ready:
        """Wait for the next batch."""

    def ready(self) -> Ready | None:
        """Return the next batch if it has arrived. Does not block. Without this method nothing is fetched ahead."""
        return None

    @abstractmethod
    def ask(self) -> None:
        """Request the batches after the last one that was waited for. May be called several times."""

    def _goes_on(self) -> bool:
        return (self._prefetcher is not None and self._prefetcher.waiting) or self.has_more()

    def _prefetched(self, prefetcher: Prefetcher[tuple[int, int]]) -> Ready:
        """Wait for the next batch, and start to copy it and some later ones to the device."""
        (number, samples), give = prefetcher.next(self._fetch, self._fetch_ahead)
        return number, samples, give

    def _fetch(self) -> Fetched[tuple[int, int]]:
        number, samples, make = self.wait()
        return (number, samples), make

    def _fetch_ahead(self) -> Fetched[tuple[int, int]] | None:
        self.ask()
        came = self.ready() if self.has_more() else None
        return None if came is None else ((came[0], came[1]), came[2])

    def _say_ended(self) -> None:
        if not self._ended:
            self._place.given(None)
            if self._accelerate is not None:
                self._accelerate.last()
        self._ended = True

    def _end(self) -> None:
        if self._over:
            return
        self._say_ended()
        self._tally.end()
        if self._turn is not None:
            self._turn.end()
        if self._accelerate is not None:
            self._accelerate.end()
        self._turn, self._over = None, True

    def __del__(self) -> None:
        """Report the figures of a loop that was left early."""
        if (place := getattr(self, "_place", None)) is not None:
            place.drop()
        if (tally := getattr(self, "_tally", None)) is not None:
            tally.flush()
        if (accelerate := getattr(self, "_accelerate", None)) is not None:
            accelerate.end()
