"""How samples are grouped into batches, and the memory of batches that differ in size."""

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
    """How samples are grouped into batches.

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
        """Refuse both together."""
        if self.batch_size is not None and self.total is not None:
            raise StreamError(
                f"MPIStreamDataset has batch_size={self.batch_size}, for each trainer, and "
                f"global_batch_size={self.total}, for all of them together. Give only one of the two."
            )

    def __str__(self) -> str:
        """Return the argument as text."""
        return f"batch_size={self.batch_size}" if self.total is None else f"global_batch_size={self.total}"

    def start(self, library: Library) -> None:
        """Let the library draw such batches."""
        if self.total is None:
            check(library, library.mpidata_trainer_start(self.batch_size or 1))
        else:
            check(library, library.mpidata_trainer_start_together(self.total))

    def check_alike(self, other: Grouping) -> None:
        """Raise StreamError if another dataset would have other batches."""
        if self != other:
            raise StreamError(
                f"MPIStreamDataset({other}) cannot be created: this trainer's stream already has {self}. A process has "
                "one stream: use the same batch size for all its datasets."
            )

    @property
    def most(self) -> int | None:
        """Largest number of samples in a batch, whoever draws it; None for single samples."""
        return self.batch_size if self.total is None else self.total

    def largest(self, trainers: int) -> int:
        """Return the size of the largest batch that one of this number of trainers draws."""
        return (self.batch_size or 1) if self.total is None else -(-self.total // trainers)

    def drawn_by_all(self, trainers: int) -> int:
        """Return the number of samples that this number of trainers draw with one batch each."""
        return trainers * (self.batch_size or 1) if self.total is None else self.total

    def filled(self, samples: int, trainer: int, trainers: int, *, whole: bool) -> int:
        """Return the number of batches of this trainer that its samples fill if `whole`, or else need.

        Like c_api/src/stream/shares/shares.h.
        """
        if self.total is None:
            size = self.batch_size or 1
            return samples // size if whole else -(-samples // size)
        if whole:
            return (samples * trainers + trainer) // self.total
        return max(0, -((trainers - 1 - trainer - samples * trainers) // self.total))


class BySize(Generic[_Memory]):
    """Memory of batches of different sizes, made when a size is first needed; that of size `first` at once."""

    def __init__(self, make: Callable[[int], _Memory], first: int) -> None:
        self._make = make
        self._made = {first: make(first)}

    def of(self, size: int) -> _Memory:
        """Return the memory of batches of this size."""
        if size not in self._made:
            if len(self._made) > 1:  # there are two sizes, until a trainer dies
                del self._made[next(iter(self._made))]
            self._made[size] = self._make(size)
        return self._made[size]


def check_positive(name: str, value: Any) -> None:
    """Raise StreamError if an argument is neither None nor a positive integer."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise StreamError(f"{name}={value!r} is not a positive integer. Give 1 or more, or leave it out.")


def check_even(grouping: Grouping, replica: Replica) -> None:
    """Raise StreamError if replicas of several ranks would have batches of unequal sizes: nothing weights these."""
    if replica.size > 1 and grouping.total is not None and grouping.total % replica.count:
        raise StreamError(
            f"MPIStreamDataset({grouping}) does not divide evenly among {replica.count} replicas of {replica.size} "
            "ranks, whose gradients are not weighted. Use a multiple of the number of replicas."
        )
