"""Checkpoints of a replica: one file with the states of all its ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mpidata.checkpoint.restore import Restored, open_all
from mpidata.checkpoint.snapshots import Checkpoints
from mpidata.checkpoint.trainer_file import Saved
from mpidata.errors import StreamError
from mpidata.trainer.replica.link import Bytes, Link, Tag, bytes_of
from mpidata.trainer.replica.records import Kind, pack, unpack

if TYPE_CHECKING:
    from mpidata.native.library import Library
    from mpidata.run.plan import Plan

__all__ = ["FirstCheckpoints", "MateCheckpoints"]


class FirstCheckpoints(Checkpoints):
    """The checkpoints of the first rank, which writes the states of its mates with its own.

    Parameters
    ----------
    plan, library, index
        As in `Checkpoints`.
    link : Link
        The link to the mates.
    gone : callable
        Returns the mates whose scripts are known to have ended.

    Notes
    -----
    A mate answers each checkpoint that was begun: with its state, or with the reason why it has none.
    """

    def __init__(
        self, plan: Plan, library: Library, index: int, link: Link, gone: Callable[[], Collection[int]]
    ) -> None:
        super().__init__(plan, library, index)
        self._link, self._gone = link, gone
        self._begun = self._answered = 0

    def take(self) -> bool:
        """Take a checkpoint at this batch, together with the mates."""
        self.finish()
        self._link.send(self._link.mates, Tag.RECORD, pack(Kind.CHECKPOINT), wait=False)
        taken = super().take()
        self._begun += 1
        return taken

    def states(self) -> dict[str, Saved]:
        """Copy the states of this rank; raises StreamError if a mate has left, because its part would be missing."""
        for rank in self._gone():
            raise StreamError(f"the script of rank {rank} of the replica has ended")
        return super().states()

    def finish(self) -> None:
        """Wait until the current snapshot is written, and the mates have answered also those that were abandoned."""
        super().finish()
        while self._answered < self._begun:
            self._receive()

    def of_mates(self) -> list[dict[str, Saved]]:
        """Wait for the states of the mates, in their order; for the thread that writes."""
        states = []
        for rank, (error, state) in self._receive().items():
            if error:
                raise StreamError(f"rank {rank} of the replica cannot save its state: {error}")
            states.append(state)
        return states

    def _receive(self) -> dict[int, tuple[str, dict[str, Saved]]]:
        """Wait for the mates' answers about one checkpoint."""
        answers = {}
        for rank in self._link.mates:
            incoming = self._link.receive(rank, Tag.STATE)
            error, names = unpack(incoming.head)
            arrays = [array.tobytes() for array in incoming.arrays()]
            pairs = zip(names, arrays[::2], arrays[1::2], strict=True)
            answers[rank] = error, {name: Saved(contents, layout) for name, contents, layout in pairs}
        self._answered += 1
        return answers


class MateCheckpoints(Checkpoints):
    """The checkpoints of a mate, which sends its states to the first rank.

    Parameters
    ----------
    plan, library, index
        As in `Checkpoints`.
    link : Link
        The link to the first rank.
    """

    def __init__(self, plan: Plan, library: Library, index: int, link: Link) -> None:
        super().__init__(plan, library, index)
        self._link, self._rank = link, link.rank

    def restore(self) -> None:
        """Take over the state of this rank from the plan's checkpoint."""
        if self._plan.checkpoint:
            with open_all(self._folder()) as files:
                own = files[self._index % len(files)]
                self.restored = Restored(own.head.batch, own.state(self._rank), len(files))

    def take(self) -> bool:
        """Send this rank's states to the first rank, which takes the same checkpoint."""
        self.finish()
        error, state = "", dict[str, Saved]()
        try:
            state = self._state() | self._own_state()
        except Exception as caught:  # a registered object may raise anything
            error = f"{type(caught).__name__}: {caught}"
        self._writing = threading.Thread(target=self._send, args=(error, state), name="checkpoint", daemon=True)
        self._writing.start()
        return True

    def decline(self) -> None:
        """Answer a checkpoint that the first rank takes after the script of this one has ended."""
        self._send("its script has ended", {})

    def _send(self, error: str, state: dict[str, Saved]) -> None:
        arrays: list[Bytes] = []
        for saved in state.values():
            arrays += [bytes_of(saved.contents), bytes_of(saved.layout)]
        self._link.send([0], Tag.STATE, pack(error, list(state)), arrays)
