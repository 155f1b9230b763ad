"""Where the trainers that train and the spares come together, and what follows for who trains: the same on all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.trainer.elastic.attempt import Attempt, and_all, split
from mpidata.trainer.elastic.change import among, without
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.waiting import alone, left

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["MOST_DATASETS", "Decision", "Meeting", "Row", "decide"]

MOST_DATASETS = 16
_TAG = 1


@dataclass(frozen=True)
class Row:
    """What each says at a meeting.

    Attributes
    ----------
    own : int
        Its rank at the start of the job, among trainers and spares.
    generation : int
        Number of the newest change; -1 of a spare, whose other values say nothing.
    order : (int, int)
        The newest order of how many are to train, and how many.
    may_join : bool
        Whether its datasets can be dealt anew now.
    numbers : list of int
        By number, the ranks at the start of those that train.
    holes : list of int
        Numbers of those that were lost, for which no spare has come.
    places : ndarray, int64, shape (MOST_DATASETS, 2)
        Where its datasets are.
    """

    own: int
    generation: int
    order: tuple[int, int]
    may_join: bool
    numbers: Sequence[int]
    holes: Sequence[int]
    places: NDArray[np.int64]

    def pack(self, most: int) -> NDArray[np.int64]:
        """Make an array of as many numbers as all have, where there are so many trainers and spares."""
        lists = [[*of, *[-1] * (most - len(of))] for of in (self.numbers, self.holes)]
        head = [self.own, self.generation, *self.order, self.may_join]
        return np.concatenate([head, *lists, self.places.reshape(-1)]).astype(np.int64)

    @classmethod
    def unpack(cls, packed: NDArray[np.int64], most: int) -> Row:
        """Read what `pack` has made."""
        own, generation, order, count, may_join = packed[:5].tolist()
        numbers, holes = packed[5 : 5 + most].tolist(), packed[5 + most : 5 + 2 * most].tolist()
        places = packed[5 + 2 * most :].reshape(MOST_DATASETS, 2)
        numbers, holes = ([one for one in of if one >= 0] for of in (numbers, holes))
        return cls(own, generation, (order, count), bool(may_join), numbers, holes, places)


@dataclass(frozen=True)
class Decision:
    """What a meeting has decided. Trainers and spares are named by their ranks at the start.

    Attributes
    ----------
    before : list of int
        By number, who has trained.
    generation : int
        Of that.
    lost : list of int
        Numbers of those that have died.
    numbers, holes : list of int
        As of `Row`, from now on.
    joined, retired : list of int
        Who takes a place, and who leaves.
    order : int
        Number of the order that is carried out with this; -1 where the datasets cannot be dealt anew now.
    places : ndarray
        Where all datasets are; with the furthest, where they are not at the same places.
    alike : bool
        Whether they are.
    """

    before: Sequence[int]
    generation: int
    lost: Sequence[int]
    numbers: Sequence[int]
    holes: Sequence[int]
    joined: Sequence[int]
    retired: Sequence[int]
    order: int
    places: NDArray[np.int64]
    alike: bool = True


def decide(rows: Sequence[Row]) -> Decision:
    """Decide who trains from now on; raises StreamError where nobody is left that has trained."""
    training = {row.own: row for row in rows if row.generation >= 0}
    if not training:
        raise StreamError("All trainers have died before a spare could take a place: nobody has their state any more.")
    one = next(iter(training.values()))
    before, holes = list(one.numbers), list(one.holes)
    lost = [number for number, own in enumerate(before) if own not in training]
    numbers = without(before, lost)
    holes += lost
    order, wanted = max(row.order for row in rows)
    places = np.array([max(of) for of in zip(*(row.places.tolist() for row in training.values()), strict=True)])
    alike = all((row.places == places).all() for row in training.values())
    if not (alike and all(row.may_join for row in training.values())):
        return Decision(before, one.generation, lost, numbers, holes, [], [], -1, places, alike)
    spares = sorted(row.own for row in rows if row.generation < 0)
    joined = spares[: max(0, wanted - len(numbers))]
    retired = numbers[wanted:] if wanted > 0 else []
    numbers, holes = among(numbers[: len(numbers) - len(retired)], joined, holes)
    return Decision(before, one.generation, lost, numbers, holes, joined, retired, order, one.places)


class Meeting:
    """The trainers and spares that live.

    Parameters
    ----------
    everyone : mpi4py.MPI.Intracomm
        Of all of them, for this object alone.
    report : callable
        As of `Attempt`.
    """

    def __init__(self, everyone: MPI.Intracomm, report: Callable[[float], object]) -> None:
        self._everyone, self._report = everyone, report
        self._first = everyone.Get_group()
        self.most = everyone.Get_size()
        self._owns = list(range(self.most))

    def call(self, training: Sequence[int]) -> None:
        """Call the spares, who look for that; each of those that train does so, as any may die."""
        from mpi4py import MPI

        for rank in [rank for rank, own in enumerate(self._owns) if own not in training]:
            try:
                left.append(self._everyone.Isend(np.zeros(1, np.int8), rank, _TAG))
            except MPI.Exception:  # it has died
                continue

    def is_called(self) -> bool:
        """Whether those that train have called."""
        from mpi4py import MPI

        try:
            return self._everyone.Iprobe(MPI.ANY_SOURCE, _TAG)
        except MPI.Exception:
            self._everyone.Ack_failed()
            return False

    def meet(self, row: Row) -> tuple[Decision, MPI.Intracomm, MPI.Intracomm]:
        """Come together; again where somebody dies meanwhile.

        Returns
        -------
        Decision
            The same on all.
        MPI.Intracomm, MPI.Intracomm
            Two of those that train from now on, in the order of their ranks; of no use to the others.

        Notes
        -----
        Collective over trainers and spares that live; sleeps until all have come.
        """
        from mpi4py import MPI

        done = False
        while not done:
            self._agree(True)
            with alone():
                living = self._everyone.Shrink()
                assert isinstance(living, MPI.Intracomm)
                self._everyone = living
                self._agree(True)  # none may revoke it while others are still making it: Open MPI 5.0 crashes then
                try:
                    decision = decide(self._gather(row))
                    made = [split(living, row.own in decision.numbers) for _ in range(2)]
                    everyone = split(living, row.own not in decision.retired) if decision.retired else living
                    done = True
                except MPI.Exception:
                    living.Revoke()
                done = self._agree(done)
        self._everyone = everyone
        if everyone != MPI.COMM_NULL:
            group = everyone.Get_group()
            self._owns = group.Translate_ranks(None, self._first)
            group.Free()
        reached("met")
        return decision, made[0], made[1]

    def _gather(self, row: Row) -> list[Row]:
        from mpi4py import MPI

        own, attempt = row.pack(self.most), Attempt(self._everyone, self._report)
        all_rows = np.zeros((self._everyone.Get_size(), len(own)), np.int64)
        attempt.post(self._everyone.Iallgather, own, all_rows)
        if not attempt.wait():
            raise MPI.Exception(MPI.ERR_OTHER)
        return [Row.unpack(packed, self.most) for packed in all_rows]

    def _agree(self, done: bool) -> bool:
        self._everyone.Ack_failed()
        return bool(and_all(self._everyone, done, self._report))
