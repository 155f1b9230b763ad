"""How samples make batches, and the memory of batches that differ in size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mpidata.errors import StreamError
from mpidata.native.library import Library, check
from mpidata.trainer.replica.replica import Replica

__all__ = ["BySize", "Grouping", "check_even", "check_positive"]

_Memory = TypeVar("_Memory")


@dataclass(frozen=True)
class Grouping:
    """How samples make batches.

    Attributes
    ----------
    batch_size : int or None
        Samples in a batch of each trainer.
    total : int or None
        Samples in a batch of all trainers together; without both, single samples are drawn.
    """

    batch_size: int | None = None
    total: int | None = None

    def __post_init__(self) -> None:
        """Refuse both."""
        if self.batch_size is not None and self.total is not None:
            raise StreamError(
                f"MPIStreamDataset has batch_size={self.batch_size}, for each trainer, and "
                f"global_batch_size={self.total}, for all of them together. Give one of the two."
            )

    def __str__(self) -> str:
        """Show the argument."""
        return f"batch_size={self.batch_size}" if self.total is None else f"global_batch_size={self.total}"

    def start(self, library: Library) -> None:
        """Have the library draw such batches."""
        if self.total is None:
            check(library, library.mpidata_trainer_start(self.batch_size or 1))
        else:
            check(library, library.mpidata_trainer_start_together(self.total))

    def check_alike(self, other: Grouping) -> None:
        """Raise StreamError where another dataset is to have other batches."""
        if self != other:
            raise StreamError(
                f"MPIStreamDataset({other}) cannot be made: this trainer's stream already has {self}. A process has "
                "one stream; use one batch size for its datasets."
            )

    @property
    def most(self) -> int | None:
        """Samples that a batch has at most, whoever draws it; None: these are single samples."""
        return self.batch_size if self.total is None else self.total

    def largest(self, trainers: int) -> int:
        """Count the samples of the largest batch that one of so many trainers draws."""
        return (self.batch_size or 1) if self.total is None else -(-self.total // trainers)

    def drawn_by_all(self, trainers: int) -> int:
        """Count the samples that so many trainers draw with a batch each."""
        return trainers * (self.batch_size or 1) if self.total is None else self.total

    def filled(self, samples: int, trainer: int, trainers: int, *, whole: bool) -> int:
        """Count the batches of this trainer that so many samples fill, or else, that they need.

        As c_api/src/stream/shares/shares.h has it.
        """
        if self.total is None:
            size = self.batch_size or 1
            return samples // size if whole else -(-samples // size)
        if whole:
            return (samples * trainers + trainer) // self.total
        return max(0, -((trainers - 1 - trainer - samples * trainers) // self.total))


class BySize(Generic[_Memory]):
    """Memory of batches of different sizes, made when a size is first needed; `first` at once."""

    def __init__(self, make: Callable[[int], _Memory], first: int) -> None:
        self._make = make
        self._made = {first: make(first)}

    def of(self, size: int) -> _Memory:
        """Give the memory of batches of this size."""
        if size not in self._made:
            if len(self._made) > 1:  # there are two sizes, until a trainer dies
                del self._made[next(iter(self._made))]
            self._made[size] = self._make(size)
        return self._made[size]


def check_positive(name: str, value: Any) -> None:
    """Raise StreamError where an argument is neither None nor a whole number from 1."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise StreamError(f"{name}={value!r} is no positive whole number. Give a number from 1, or leave it out.")


def check_even(grouping: Grouping, replica: Replica) -> None:
    """Raise StreamError where replicas of several ranks would have batches of unlike sizes, which nothing weighs."""
    if replica.size > 1 and grouping.total is not None and grouping.total % replica.count:
        raise StreamError(
            f"MPIStreamDataset({grouping}) cannot be shared evenly by {replica.count} replicas of {replica.size} "
            "ranks, and no weights are given to their gradients. Make it a multiple of the number of replicas."
        )
