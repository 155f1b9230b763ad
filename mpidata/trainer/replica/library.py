"""What takes the place of the library of trainers on a mate, which has no buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

from mpidata.errors import StreamError
from mpidata.trainer.replica.records import Facts, Word

__all__ = ["MateLibrary"]


class MateLibrary:
    """Answers from what the first rank has told, and passes on what the script says.

    Parameters
    ----------
    facts : callable
        Gives what is known now.
    say : callable
        Tells the first rank.
    """

    def __init__(self, facts: Callable[[], Facts], say: Callable[..., None]) -> None:
        self._facts, self._say = facts, say

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what only the first rank of a replica can do."""
        what = name.removeprefix("mpidata_trainer_")
        raise StreamError(
            f"This is a further rank of a replica, which cannot do this itself ({what}). Do it on the first rank, "
            "where mpidata.replica().rank is 0."
        )

    def mpidata_trainer_start(self, batch_size: int) -> int:
        """Leave the batches to the first rank."""
        return 0

    def mpidata_trainer_start_together(self, total: int) -> int:
        """Leave the batches to the first rank."""
        return 0

    def mpidata_trainer_steps(self, steps: Any) -> int:
        """Tell how many steps simulations have."""
        steps._obj.value = self._facts().steps
        return 0

    def mpidata_trainer_scales(self, address: int) -> int:
        """Copy the moments."""
        if (moments := self._facts().moments) is not None:
            ctypes.memmove(address, moments.ctypes.data, moments.nbytes)
        return 0

    def mpidata_trainer_report(self, name: bytes, value: float) -> int:
        """Pass a value on."""
        self._say(Word.REPORT, name, value)
        return 0

    def mpidata_trainer_losses(self, address: int, count: int, last: int) -> int:
        """Leave losses to the first rank: they count once."""
        return 0

    def mpidata_trainer_checkpoint(self) -> int:
        """Ask for a checkpoint."""
        self._say(Word.CHECKPOINT)
        return 0
