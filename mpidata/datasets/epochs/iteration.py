"""One pass over a dataset on loaders, whatever its class.

What holds for each, as for the nodes of torchdata: `iter()` begins a pass, the next one or where a loaded state ends;
`next()` gives a batch, and at the end StopIteration however often it is called; a state is that after the batch that
was given out last, and after an epoch's last one it is the beginning of the next.
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
"""A batch that has come: its number in the epoch, its samples, and what makes it."""


class Iteration(ABC, Iterator[Any]):
    """The batches of one epoch.

    Parameters
    ----------
    length : callable
        Gives the number of batches of a whole epoch; may raise TypeError.
    place : Pass
        Told of each batch just before it is given out, by its number; and behind the last: None.
    tally : Tally
        Told of batches and waits, too.
    turn : Turn
        Of this iteration.
    accelerate : AcceleratePass, optional
        Told of the last batch, where `accelerator.prepare` was given the dataset.
    when_out : callable, optional
        Called when there is no further batch; it may add some to the epoch, and is called again where it gives False
        and has added none. Without it the end is announced with the
        last batch.
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
        """Count the batches of a whole epoch, as torch's iterators do."""
        return self._length()

    def __next__(self) -> Any:
        """Wait for a batch; raises what the dataset has raised, and RuntimeError after the timeout."""
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
        self._counted = True  # also where the wait is to be tried again
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
        """Whether a batch comes. Does not block."""

    @abstractmethod
    def wait(self) -> Ready:
        """Wait for the next batch."""

    def ready(self) -> Ready | None:
        """Get the next batch if it has come. Does not block. An iteration without this fetches none ahead."""
        return None

    @abstractmethod
    def ask(self) -> None:
        """Ask for what is to come after the batch that was waited for last. May be called several times."""

    def _goes_on(self) -> bool:
        return (self._prefetcher is not None and self._prefetcher.waiting) or self.has_more()

    def _prefetched(self, prefetcher: Prefetcher[tuple[int, int]]) -> Ready:
        """Wait for the next batch, and have it and some after it copied to the device."""
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
        """Report what a loop that was left had."""
        if (place := getattr(self, "_place", None)) is not None:
            place.drop()
        if (tally := getattr(self, "_tally", None)) is not None:
            tally.flush()
        if (accelerate := getattr(self, "_accelerate", None)) is not None:
            accelerate.end()
