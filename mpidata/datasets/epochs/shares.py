"""Which places of an epoch belong to which trainer and batch."""

from __future__ import annotations

from mpidata.errors import StreamError

__all__ = ["Shares"]


class Shares:
    """An epoch of n places, dealt to trainers.

    Place p is in global batch p // G, on trainer (p mod G) // B, where G = B x trainers. The last global batch is dealt
    evenly, so that all trainers have the same number of batches; if it has fewer places than there are trainers, it is
    joined with the one before.

    Parameters
    ----------
    n : int
        Number of places.
    batch_size : int
        B.
    trainers : int
        Number of trainers.
    drop_last : bool
        Drop the places that do not fill a global batch.

    Attributes
    ----------
    batches : int
        Number of batches of each trainer.
    last : int
        Number of places of the last global batch.

    Raises
    ------
    StreamError
        There are fewer places than trainers.
    """

    def __init__(self, n: int, batch_size: int, trainers: int, drop_last: bool) -> None:
        self._n, self._size, self._trainers = n, batch_size, trainers
        full, rest = divmod(n, batch_size * trainers)
        if n < trainers:
            raise StreamError(
                f"{n} rows cannot be divided among {trainers} trainers: each needs one for its batch. Start fewer "
                "trainers (`trainers: ranks:` in the job file), or give share=False."
            )
        if drop_last:
            self.batches, self.last = full, batch_size * trainers
        elif rest == 0 or (rest < trainers and full > 0):
            self.batches, self.last = full, batch_size * trainers + rest
        else:
            self.batches, self.last = full + 1, rest

    def places(self, trainer: int, batch: int) -> range:
        """Return the places of a trainer's batch, in order."""
        begin = batch * self._size * self._trainers
        if batch < self.batches - 1:
            return range(begin + trainer * self._size, begin + (trainer + 1) * self._size)
        first, end = (t * self.last // self._trainers for t in (trainer, trainer + 1))
        return range(begin + first, begin + end)

    def even_places(self, trainer: int, batch: int) -> list[int]:
        """Return the places of a trainer's batch; the last global batch is padded from the beginning to an even size.

        The last batches of all trainers, joined in order, contain the actual places first, then the padding.
        """
        if batch < self.batches - 1:
            return list(self.places(trainer, batch))
        each = -(-self.last // self._trainers)
        begin = batch * self._size * self._trainers + trainer * each
        return [place % self._n for place in range(begin, begin + each)]
