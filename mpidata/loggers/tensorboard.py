"""`log: [tensorboard]`: event files that TensorBoard reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

__all__ = ["TensorBoard"]

_FLUSH_S = 5


class TensorBoard:
    """Writes what is reported into `tensorboard/` of the run folder, with the batch as its step.

    Notes
    -----
    With the package `tensorboard` alone: the scheduler need not load torch.
    """

    def open(self, run: Path, job: dict[str, Any]) -> None:
        """Begin a file of events."""
        folder = run / "tensorboard"
        self._resumed = folder.is_dir()
        self._writer = EventFileWriter(str(folder), flush_secs=_FLUSH_S)

    def write(self, time: float, batch: int, values: dict[str, float]) -> None:
        """Add the values of a batch."""
        if self._resumed:  # what was reported after the checkpoint is reported again
            self._resumed = False
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time, step=batch, session_log=start))
        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._writer.add_event(Event(wall_time=time, step=batch, summary=Summary(value=scalars)))

    def close(self, status: str) -> None:
        """End the file."""
        self._writer.close()
