"""`log: [tensorboard]`: event files that TensorBoard reads."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

__all__ = ["TensorBoard"]

_FLUSH_S = 5
_RGBA = 4  # of matplotlib's PNG files


class TensorBoard:
    """Writes what is reported into `tensorboard/` of the run folder, with the batch as its step.

    Notes
    -----
    Uses only the package `tensorboard`, so that the scheduler need not load torch.
    """

    def open(self, run: Path, job: dict[str, Any]) -> None:
        """Start an event file."""
        folder = run / "tensorboard"
        self._resumed = folder.is_dir()
        self._writer = EventFileWriter(str(folder), flush_secs=_FLUSH_S)

    def write(self, time: float, batch: int, values: dict[str, float]) -> None:
        """Add the values of a batch."""
        self._add(time, batch, [Summary.Value(tag=name, simple_value=value) for name, value in values.items()])

    def picture(self, time: float, batch: int, name: str, path: Path) -> None:
        """Add a picture."""
        png = path.read_bytes()
        width, height = struct.unpack(">II", png[16:24])  # PNG specification, 11.2.2 IHDR
        image = Summary.Image(height=height, width=width, colorspace=_RGBA, encoded_image_string=png)
        self._add(time, batch, [Summary.Value(tag=name, image=image)])

    def _add(self, time: float, batch: int, values: list[Any]) -> None:
        if self._resumed:  # what was reported after the checkpoint is reported again
            self._resumed = False
            start = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time, step=batch, session_log=start))
        self._writer.add_event(Event(wall_time=time, step=batch, summary=Summary(value=values)))

    def close(self, status: str) -> None:
        """Close the file."""
        self._writer.close()
