"""The trainers of a job that ends when one of them dies."""

from __future__ import annotations

from collections.abc import Callable

from mpidata.errors import StreamError
from mpidata.trainer.elastic.attempt import Attempt
from mpidata.trainer.elastic.change import Shared
from mpidata.trainer.elastic.members import Members

__all__ = ["Fixed"]


class Fixed(Members):
    """Trainers as `Members`, of whom none is lost; without ULFM, and without an agreement."""

    def attempt(self, report: Callable[[float], object] | None = None) -> Attempt:
        """Begin to begin something collective."""
        return _Attempt(self.communicator, report or self.report)

    def once(
        self, begin: Callable[[Attempt], object], attempt: Attempt | None = None, step: bool | Shared = False
    ) -> bool:
        """Do something collective; raises StreamError where MPI fails."""
        if attempt is None:
            attempt = self.attempt()
            begin(attempt)
        if not attempt.wait():
            raise StreamError("The trainers cannot reduce: MPI fails, as a trainer has died perhaps.")
        return True


class _Attempt(Attempt):
    def _is_broken(self) -> bool:
        return False

    def _fail(self) -> None:
        self._failed = True
