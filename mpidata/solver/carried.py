"""A carried Python program: the same calls, through libmpidata_carried."""

from __future__ import annotations

import os

from mpidata.native.library import check
from mpidata.native.loading import load_carried
from mpidata.run.plan import Plan
from mpidata.solver.group_rank import GroupRank

__all__ = ["CarriedRank", "attach", "is_carried"]


class CarriedRank(GroupRank):
    """A rank of a program that a carrier has started."""

    def place(self) -> str:
        """Return what this rank is doing, for messages."""
        who = f"The carried program of group {os.environ.get('MPIDATA_GROUP', '?')}"
        if self.current is None:
            return f"{who}, outside a simulation"
        return f"{who}, simulation {self.current.id}, step {self.steps}"

    def say_raised(self, error: BaseException) -> str:
        """Log the exception, and report it to the carrier."""
        what = super().say_raised(error)
        self.say_last_words(what)
        return what

    def end_raised(self, error: BaseException) -> None:
        """Log the exception; the carrier also gets it."""
        self.say_raised(error)

    def say_last_words(self, what: str) -> None:
        """Report to the carrier why this program ends."""
        self.library.mpidata_carried_last_words(what.encode())

    @property
    def may_die(self) -> bool:
        """Whether the end of this program costs only a try: always, because it is started again."""
        return not self.finalized


def is_carried() -> bool:
    """Whether a carrier has started this program."""
    return bool(os.environ.get("MPIDATA_CARRIER"))


def attach() -> CarriedRank:
    """Attach to the carrier; raises LibraryError if that fails."""
    library = load_carried()
    check(library, library.mpidata_attach())
    return CarriedRank(library, None, Plan.parse(library.mpidata_carried_plan().decode()))
