"""Checkpoints of a replica: one file with the states of all its ranks."""

from __future__ import annotations

import threading
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
    """

    def __init__(self, plan: Plan, library: Library, index: int, link: Link) -> None:
        super().__init__(plan, library, index)
        self._link = link
        self._taken = 0

    def take(self) -> bool:
        """Take a checkpoint at this batch, together with the mates."""
        self.finish()
        self._taken += 1
        if self._plan.has_stream:  # else each mate finds it when it counts a batch
            self._link.send(self._link.mates, Tag.STREAM, pack(Kind.CHECKPOINT), wait=False)
        return super().take()

    def of_mates(self) -> list[dict[str, Saved]]:
        """Wait for the states of the mates, in their order; for the thread that writes."""
        states = []
        for rank in self._link.mates:
            of, error, names, arrays = 0, "", list[str](), list[bytes]()
            while of != self._taken:  # skips states of a checkpoint that this rank has abandoned
                incoming = self._link.receive(rank, Tag.STATE)
                of, error, names = unpack(incoming.head)
                arrays = [array.tobytes() for array in incoming.arrays()]
            if error:
                raise StreamError(f"rank {rank} of the replica cannot save its state: {error}")
            pairs = zip(names, arrays[::2], arrays[1::2], strict=True)
            states.append({name: Saved(contents, layout) for name, contents, layout in pairs})
        return states


class MateCheckpoints(Checkpoints):
    """The checkpoints of a mate, which sends its states to the first rank; parameters as in `FirstCheckpoints`."""

    def __init__(self, plan: Plan, library: Library, index: int, link: Link) -> None:
        super().__init__(plan, library, index)
        self._link, self._rank, self._taken = link, link.rank, 0

    def restore(self) -> None:
        """Take over the state of this rank from the plan's checkpoint."""
        if self._plan.checkpoint:
            with open_all(self._folder()) as files:
                own = files[self._index % len(files)]
                self.restored = Restored(own.head.batch, own.state(self._rank), len(files))

    def take(self) -> bool:
        """Send this rank's states to the first rank, which takes the same checkpoint."""
        self.finish()
        self._taken += 1
        error, state = "", dict[str, Saved]()
        try:
            state = self._state() | self._own_state()
        except Exception as caught:  # a registered object may raise anything
            error = f"{type(caught).__name__}: {caught}"
        self._writing = threading.Thread(target=self._send, args=(error, state), name="checkpoint", daemon=True)
        self._writing.start()
        return True

    def _send(self, error: str, state: dict[str, Saved]) -> None:
        arrays: list[Bytes] = []
        for saved in state.values():
            arrays += [bytes_of(saved.contents), bytes_of(saved.layout)]
        self._link.send([0], Tag.STATE, pack(self._taken, error, list(state)), arrays)
