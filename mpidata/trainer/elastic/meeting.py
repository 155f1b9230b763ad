"""Meetings of active trainers and spares, which decide who trains from then on: the same on all."""

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
    """What each rank reports at a meeting.

    Attributes
    ----------
    own : int
        Its initial rank, among trainers and spares.
    generation : int
        Number of the newest change; -1 for a spare, whose other values mean nothing.
    order : (int, int)
        Number of the newest order to change the number of trainers, and the number that it requests.
    may_join : bool
        Whether its datasets can be divided again now.
    numbers : list of int
        The initial ranks of the active trainers, by number.
    holes : list of int
        Numbers of lost trainers that no spare has replaced.
    places : ndarray, int64, shape (MOST_DATASETS, 2)
        Positions of its datasets.
    """

    own: int
    generation: int
    order: tuple[int, int]
    may_join: bool
    numbers: Sequence[int]
    holes: Sequence[int]
    places: NDArray[np.int64]

    def pack(self, most: int) -> NDArray[np.int64]:
        """Return an array of the same size on all ranks; `most` is the number of trainers and spares."""
        lists = [[*of, *[-1] * (most - len(of))] for of in (self.numbers, self.holes)]
        head = [self.own, self.generation, *self.order, self.may_join]
        return np.concatenate([head, *lists, self.places.reshape(-1)]).astype(np.int64)

    @classmethod
    def unpack(cls, packed: NDArray[np.int64], most: int) -> Row:
        """Make a row from the array of `pack`."""
        own, generation, order, count, may_join = packed[:5].tolist()
        numbers, holes = packed[5 : 5 + most].tolist(), packed[5 + most : 5 + 2 * most].tolist()
        places = packed[5 + 2 * most :].reshape(MOST_DATASETS, 2)
        numbers, holes = ([one for one in of if one >= 0] for of in (numbers, holes))
        return cls(own, generation, (order, count), bool(may_join), numbers, holes, places)


@dataclass(frozen=True)
class Decision:
    """The decision of a meeting. Trainers and spares are identified by their initial ranks.

    Attributes
    ----------
    before : list of int
        The trainers so far, by number.
    generation : int
        Their generation.
    lost : list of int
        Numbers of those that have died.
    numbers, holes : list of int
        As in `Row`, from now on.
    joined, retired : list of int
        The spares that take a place, and the trainers that leave.
    order : int
        Number of the order that this carries out; -1 if the datasets cannot be divided again now.
    places : ndarray
        Positions of all datasets; the furthest ones if they differ between trainers.
    alike : bool
        Whether the positions are the same on all trainers.
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
    """Decide who trains from now on; raises StreamError if no trainer that has trained is left."""
    training = {row.own: row for row in rows if row.generation >= 0}
    if not training:
        raise StreamError("All trainers died before a spare could take a place: no rank has their state any more.")
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
    """The living trainers and spares.

    Parameters
    ----------
    everyone : mpi4py.MPI.Intracomm
        Communicator of all of them, for this object alone.
    report : callable
        As in `Attempt`.
    """

    def __init__(self, everyone: MPI.Intracomm, report: Callable[[float], object]) -> None:
        self._everyone, self._report = everyone, report
        self._first = everyone.Get_group()
        self.most = everyone.Get_size()
        self._owns = list(range(self.most))

    def call(self, training: Sequence[int]) -> None:
        """Call the spares, which poll for it; every active trainer does so, because any may die."""
        from mpi4py import MPI

        for rank in [rank for rank, own in enumerate(self._owns) if own not in training]:
            try:
                left.append(self._everyone.Isend(np.zeros(1, np.int8), rank, _TAG))
            except MPI.Exception:  # it has died
                continue

    def is_called(self) -> bool:
        """Whether an active trainer has called."""
        from mpi4py import MPI

        try:
            return self._everyone.Iprobe(MPI.ANY_SOURCE, _TAG)
        except MPI.Exception:
            self._everyone.Ack_failed()
            return False

    def meet(self, row: Row) -> tuple[Decision, MPI.Intracomm, MPI.Intracomm]:
        """Meet the other ranks; repeats if one dies meanwhile.

        Returns
        -------
        Decision
            The decision, the same on all.
        MPI.Intracomm, MPI.Intracomm
            Two communicators of the trainers that train from now on, in the order of their ranks; null on the others.

        Notes
        -----
        Collective over the living trainers and spares; sleeps until all have called it.
        """
        from mpi4py import MPI

        done = False
        while not done:
            self._agree(True)
            with alone():
                living = self._everyone.Shrink()
                assert isinstance(living, MPI.Intracomm)
                self._everyone = living
                self._agree(True)  # no rank may revoke it while others still create it: Open MPI 5.0 then crashes
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
