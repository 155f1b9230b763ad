"""The methods of MPIStreamDataset about checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mpidata.checkpoint.state import Stateful
from mpidata.errors import StreamError

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["StreamCheckpoints"]


class StreamCheckpoints:
    """The part of MPIStreamDataset for checkpoints."""

    _trainer: Trainer

    @property
    def resumed(self) -> int:
        """Number of the batch (or single sample) from which this run resumes; 0 if it starts from the beginning."""
        return self._trainer.checkpoints.restored.batch

    def register(self, **objects: Stateful) -> None:
        """Keep the states of these objects in checkpoints, and restore them if the job resumes from one.

        Parameters
        ----------
        **objects : Stateful
            Objects with state_dict() and load_state_dict(): the model, the optimizer, ...

        Raises
        ------
        StreamError
            An object lacks these methods, the names differ from those in the checkpoint, a state does not fit, or this
            is the second call in this process.

        Notes
        -----
        Call it once, before the loop, when the objects are on their devices. Not collective: each trainer keeps the
        states of its own objects. If the number of trainers has changed, trainer i gets those of trainer i modulo the
        former number. The states are taken within the iteration, between two batches, with torch.save. States that
        contain parts of tensors (DTensor) are saved by torch.distributed.checkpoint, collective over the default
        process group.
        """
        self._trainer.checkpoints.register(objects)

    def checkpoint(self) -> None:
        """Request a checkpoint, which is taken at one of the next batches, the same on all trainers.

        Notes
        -----
        Not collective. If several trainers request one at the same batch, one checkpoint is made. Does not block: the
        checkpoint is taken within the iteration and written while training continues. While one is being written, the
        next one waits.
        """
        self._trainer.ask_checkpoint()

    def state_dict(self) -> dict[str, Any]:
        """Return this trainer's position in the stream: ``{"batch": n}``, after n batches (or single samples).

        Notes
        -----
        This does not contain the state of the stream, whose samples exist only once. The job's checkpoints contain the
        state, and `mpidata run --resume` resumes from them. This method is for a StatefulDataLoader of torchdata around
        the stream, which may itself be registered.
        """
        return {"batch": self._trainer.drawn}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Check that the stream is where it was at a `state_dict()`; raises StreamError if it is not.

        Notes
        -----
        This does not move the stream, which can only continue from the job's checkpoint.
        """
        batch = state_dict.get("batch") if isinstance(state_dict, Mapping) else None
        if batch not in (self.resumed, self._trainer.drawn):
            raise StreamError(
                f"load_state_dict: the state is of batch {batch!r}, but this stream is at batch "
                f"{self._trainer.drawn}. A stream cannot be restored alone: register the objects that belong to it by "
                "stream.register(...), and resume the job with `mpidata run --resume`."
            )
