"""What takes the place of the library of trainers on a mate, which has no buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mpidata.errors import StreamError
from mpidata.trainer.replica.records import Facts, Word

__all__ = ["MateLibrary"]


class MateLibrary:
    """Answers from what the first rank has told, and passes on what the script says.

    Parameters
    ----------
    simulations : int
        That are trained on.
    facts : callable
        Gives what is known now.
    say : callable
        Tells the first rank.
    """

    def __init__(self, simulations: int, facts: Callable[[], Facts], say: Callable[..., None]) -> None:
        self._simulations, self._facts, self._say = simulations, facts, say
        self._cancelled: set[int] = set()
        self._version = 0

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
        """Do nothing: the first rank was told."""
        return 0

    def mpidata_trainer_cancel(self, wanted: int, n: int, taken: int, count: Any) -> int:
        """Have simulations cancelled; those are taken that this rank has not cancelled before."""
        ids = dict.fromkeys(np.frombuffer(ctypes.string_at(wanted, 8 * n), np.int64).tolist())
        told = [one for one in ids if 0 <= one < self._simulations and one not in self._cancelled]
        self._cancelled.update(told)
        ctypes.memmove(taken, np.array(told, np.int64).ctypes.data, 8 * len(told))
        count._obj.value = len(told)
        self._say(Word.CANCEL, told)
        return 0

    def mpidata_trainer_publish(self, n: int, *rest: Any) -> int:
        """Count the calls, of which those of trainer 0 have the values."""
        self._version += 1
        rest[-1]._obj.value = self._version
        return 0

    def state_dict(self) -> dict[str, int]:
        """Return how often the script has published, for checkpoints."""
        return {"version": self._version}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on counting."""
        self._version = int(state["version"])
