"""A user's sampler, of which all indices of an epoch are drawn at once, so that they can be drawn again."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

from mpidata.datasets.epochs.random_states import (
    States,
    continue_in,
    drawn_as_in,
    of_process,
    of_sampler,
    set_of_sampler,
)
from mpidata.errors import StreamError

__all__ = ["UserSampler", "is_stateful"]

_MOST_BATCHES = 1 << 31  # a sampler with a greater length is endless


def is_stateful(sampler: Any) -> bool:
    """Whether a sampler has its own state that can be restored."""
    return callable(getattr(sampler, "state_dict", None)) and callable(getattr(sampler, "load_state_dict", None))


class UserSampler:
    """The batches of indices from a user's sampler.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        That has the sampler or batch sampler.
    """

    @classmethod
    def of(cls, loader: Any) -> UserSampler | None:
        """Return one for a loader; None for None."""
        return None if loader is None else cls(loader)

    def __init__(self, loader: Any) -> None:
        self._sampler, self._source = loader._index_sampler, loader.sampler
        self._has_state = any(hasattr(s, "state_dict") for s in (loader.batch_sampler, loader.sampler))

    def check_resumable(self) -> None:
        """Raise StreamError if the remaining indices cannot be determined."""
        if not self._has_state and self._length() is None:
            raise StreamError(
                f"state_dict: the sampler ({self._name}) has no length and no state_dict, so the indices that remain "
                "are unknown. Give it __len__, or state_dict and load_state_dict."
            )

    def batches(self, states: States | None, process: States | None = None) -> tuple[Iterator[Any], States | None]:
        """Draw the indices of an epoch.

        Parameters
        ----------
        states : dict or None
            What this method returned for the same epoch, or `after` for the epoch before; None: nothing is known.
        process : dict, optional
            States of the process's generators when the state was taken from which to continue.

        Returns
        -------
        (iterator, dict or None)
            The batches' indices; and the states of the random generators before drawing them, with their hash.

        Raises
        ------
        StreamError
            Other indices were drawn than when this epoch was drawn before.
        """
        length = self._length()
        if length is None:
            continue_in(process)
            return iter(self._sampler), None
        if states is not None:
            set_of_sampler(self._sampler, states["sampler"])
        if states is None or "process" not in states:
            continue_in(process)
            states = {"process": of_process(), "sampler": of_sampler(self._sampler)}
            drawn, rest = self._drawn(length)
            states["drawn"] = _digest(drawn)
        else:
            with drawn_as_in(states["process"]):
                drawn, rest = self._drawn(length)
            if _digest(drawn) != states["drawn"]:
                raise StreamError(
                    f"load_state_dict: the sampler ({self._name}) draws other indices than in the epoch in which the "
                    "state was taken: it depends on more than random numbers of torch, numpy and random. Give it "
                    "state_dict and load_state_dict."
                )
            continue_in(process)
        return itertools.chain(drawn, rest), states

    def after(self) -> States | None:
        """Return the states to start the next epoch with, after an epoch was drawn; None: nothing is known."""
        return {"sampler": own} if (own := of_sampler(self._sampler)) else None

    def _drawn(self, length: int) -> tuple[list[Any], Iterator[Any]]:
        """Draw `length` batches, and an iterator over any further ones."""
        given = iter(self._sampler)
        whole = list(itertools.islice(given, length + 1))
        return (whole, given) if len(whole) > length else (whole, iter(()))

    @property
    def _name(self) -> str:
        names = [type(self._sampler).__name__, type(self._source).__name__]
        return " of ".join(dict.fromkeys(names))

    def _length(self) -> int | None:
        try:
            length = len(self._sampler)
        except TypeError:
            return None
        return length if length < _MOST_BATCHES else None


def _digest(batches: list[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for batch in batches:
        digest.update(repr(batch).encode(errors="surrogateescape"))
    return digest.hexdigest()
