"""What a stream does about checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mpidata.checkpoint.state import Stateful
from mpidata.errors import StreamError

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["StreamCheckpoints"]


class StreamCheckpoints:
    """The part of MPIStreamDataset that is about checkpoints."""

    _trainer: Trainer

    @property
    def resumed(self) -> int:
        """Number of the batch (or single sample) that this run goes on from; 0 where it starts afresh."""
        return self._trainer.checkpoints.restored.batch

    def register(self, **objects: Stateful) -> None:
        """Have the states of these objects kept in checkpoints, and restore them where one is continued.

        Parameters
        ----------
        **objects : Stateful
            Anything with state_dict() and load_state_dict(): the model, the optimizer, ...

        Raises
        ------
        StreamError
            An object lacks these methods; the names are not those that the checkpoint holds, or a state does not fit;
            or this is the second call in this process.

        Notes
        -----
        Once, before the loop, when the objects are on their devices. Not collective: each trainer keeps the states of
        its own objects. Where the number of trainers has changed, trainer i takes those of trainer i modulo the former
        number. The states are taken within the iteration, between two batches, with torch.save; those with parts of
        tensors (DTensor) by torch.distributed.checkpoint, collective over the default process group.
        """
        self._trainer.checkpoints.register(objects)

    def checkpoint(self) -> None:
        """Ask for a checkpoint, at one of the next batches, the same on all trainers.

        Notes
        -----
        Any number of trainers may ask at the same batch, which makes one checkpoint; not collective. Does not block:
        the checkpoint is taken within the iteration and written while training goes on. While one is being written,
        the next one waits.
        """
        self._trainer.ask_checkpoint()

    def state_dict(self) -> dict[str, Any]:
        """Return this trainer's place in the stream: ``{"batch": n}``, after n batches (or single samples).

        Notes
        -----
        The samples of a stream exist only once, so its state cannot be in here: it is in the job's checkpoints, which
        `mpidata run --resume` continues. This is for a StatefulDataLoader of torchdata around the stream, which may
        itself be registered.
        """
        return {"batch": self._trainer.drawn}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Check that the stream is where it was at a `state_dict()`; raises StreamError if it is not.

        Notes
        -----
        Moves nothing: a stream goes on only from where the job's checkpoint continues it.
        """
        batch = state_dict.get("batch") if isinstance(state_dict, Mapping) else None
        if batch not in (self.resumed, self._trainer.drawn):
            raise StreamError(
                f"load_state_dict: the state is of batch {batch!r}, but this stream is at batch "
                f"{self._trainer.drawn}. A stream cannot be set back by itself: register what belongs together with "
                "stream.register(...), and continue the job with `mpidata run --resume`."
            )
