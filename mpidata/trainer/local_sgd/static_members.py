"""The trainers of a job that ends when one of them dies."""

from __future__ import annotations

from collections.abc import Callable

from mpidata.errors import StreamError
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.change import Shared
from mpidata.trainer.elastic.members import Members

__all__ = ["Fixed"]


class Fixed(Members):
    """Like `Members`, but no trainer is lost; without ULFM, and without an agreement."""

    def attempt(self, report: Callable[[float], object] | None = None) -> Attempt:
        """Return an attempt in which to start a collective operation."""
        return _Attempt(self.communicator, report or self.report)

    def once(
        self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool | Shared = False
    ) -> bool:
        """Complete a collective operation; raises StreamError if MPI fails."""
        if attempt is None:
            attempt = self.attempt()
            begin(attempt)
        if not attempt.wait():
            raise StreamError("The trainers cannot reduce: an MPI call failed, perhaps because a trainer has died.")
        return True


class _Attempt(Attempt):
    def _is_broken(self) -> bool:
        return False

    def _fail(self) -> None:
        self._failed = True
