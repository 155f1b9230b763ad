"""A sampler of the user's, which draws an epoch's indices whole, so that they can be drawn again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from mpidata.errors import StreamError
from mpidata.loader.epochs.random_states import States, drawn_as_in, random_states

__all__ = ["UserSampler"]

_MOST_BATCHES = 1 << 31  # a sampler that says more of itself has no end


class UserSampler:
    """The batches of indices that a user's sampler gives.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        Whose sampler, or batch sampler, it is.
    """

    @classmethod
    def of(cls, loader: Any) -> UserSampler | None:
        """Make one, but for None."""
        return None if loader is None else cls(loader)

    def __init__(self, loader: Any) -> None:
        self._sampler, self._source = loader._index_sampler, loader.sampler
        self._has_state = any(hasattr(s, "state_dict") for s in (loader.batch_sampler, loader.sampler))

    def check_resumable(self) -> None:
        """Raise StreamError where nobody can say which indices are yet to come."""
        if not self._has_state and self._length() is None:
            raise StreamError(
                f"state_dict: the sampler ({type(self._sampler).__name__} of {type(self._source).__name__}) has no "
                "length and no state_dict, so it cannot be said which indices are yet to come. Give it __len__, or "
                "state_dict and load_state_dict."
            )

    def batches(self, states: States | None) -> tuple[Iterator[Any], States | None]:
        """Draw the indices of an epoch.

        Parameters
        ----------
        states : dict or None
            Of the random generators when this epoch was drawn for the first time; None: it is the first time.

        Returns
        -------
        (iterator, dict or None)
            What batches are made of, and the states before it was drawn.
        """
        length = self._length()
        if length is None:
            return iter(self._sampler), None
        if states is not None:
            with drawn_as_in(states, self._sampler):
                return self._drawn(length), states
        states = random_states(self._sampler)
        return self._drawn(length), states

    def _drawn(self, length: int) -> Iterator[Any]:
        given = iter(self._sampler)
        whole = list(itertools.islice(given, length + 1))
        return itertools.chain(whole, given) if len(whole) > length else iter(whole)

    def _length(self) -> int | None:
        try:
            length = len(self._sampler)
        except TypeError:
            return None
        return length if length < _MOST_BATCHES else None
