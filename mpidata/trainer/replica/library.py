"""The replacement of the trainers' library on a mate, which has no buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mpidata.errors import StreamError
from mpidata.trainer.replica.records import Facts, Word

__all__ = ["MateLibrary"]


class MateLibrary:
    """Answers with what the first rank has sent, and passes on the script's calls.

    Parameters
    ----------
    simulations : int
        Number of simulations that are trained on.
    facts : callable
        Returns the current facts.
    say : callable
        Sends a word to the first rank.
    """

    def __init__(self, simulations: int, facts: Callable[[], Facts], say: Callable[..., None]) -> None:
        self._simulations, self._facts, self._say = simulations, facts, say
        self._cancelled: set[int] = set()
        self._version = 0

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse calls that only the first rank of a replica can make."""
        what = name.removeprefix("mpidata_trainer_")
        raise StreamError(
            f"This is not the first rank of its replica, and only the first rank can do this ({what}). Do it where "
            "mpidata.replica().rank is 0."
        )

    def mpidata_trainer_start(self, batch_size: int) -> int:
        """Leave the batches to the first rank."""
        return 0

    def mpidata_trainer_start_together(self, total: int) -> int:
        """Leave the batches to the first rank."""
        return 0

    def mpidata_trainer_steps(self, steps: Any) -> int:
        """Return the number of steps of simulations."""
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
        """Do nothing: the first rank has the losses."""
        return 0

    def mpidata_trainer_cancel(self, wanted: int, n: int, taken: int, count: Any) -> int:
        """Cancel simulations; accept those that this rank has not cancelled before."""
        ids = dict.fromkeys(np.frombuffer(ctypes.string_at(wanted, 8 * n), np.int64).tolist())
        told = [one for one in ids if 0 <= one < self._simulations and one not in self._cancelled]
        self._cancelled.update(told)
        ctypes.memmove(taken, np.array(told, np.int64).ctypes.data, 8 * len(told))
        count._obj.value = len(told)
        self._say(Word.CANCEL, told)
        return 0

    def mpidata_trainer_publish(self, n: int, *rest: Any) -> int:
        """Count the calls; the values are those of trainer 0."""
        self._version += 1
        rest[-1]._obj.value = self._version
        return 0

    def state_dict(self) -> dict[str, int]:
        """Return the number of calls of `publish`, for checkpoints."""
        return {"version": self._version}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue the count."""
        self._version = int(state["version"])
