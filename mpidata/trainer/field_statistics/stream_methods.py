"""The methods of MPIStreamDataset for the scales of its data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mpidata.trainer.field_statistics.statistics import FieldStatistics, read_statistics

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["StreamScales"]


class StreamScales:
    """The part of MPIStreamDataset for statistics and ranges."""

    _trainer: Trainer

    def statistics(self, axes: Mapping[str, int | None] | None = None) -> dict[str, FieldStatistics]:
        """Return the statistics of each field over what all trainers have received. Needs ``samples.statistics``.

        Parameters
        ----------
        axes : mapping of str to int or None, optional
            Axis of a field's channels, which must be that of the job file; None for one number for the whole field,
            even if the job file names an axis.

        Returns
        -------
        dict of str to FieldStatistics
            `count`, `mean`, `std`, `min`, `max` and `not_finite`: float64 tensors, [C] for fields for which the job
            file names an axis, otherwise [].

        Raises
        ------
        StreamError
            The job keeps no statistics, there is no such field, or its statistics are not kept by this axis.

        Notes
        -----
        The same on all trainers that have drawn the same number of batches; empty before the first batch, complete at
        the end of the stream. Each sample received counts once, however often it is drawn; with windows, each step.
        Validation samples do not count. Not collective; any thread; does not block.
        """
        return read_statistics(self._trainer.plan, self._trainer.library, axes)

    @property
    def channel_axes(self) -> dict[str, int]:
        """Axis of the channels, for fields for which ``samples.statistics`` of the job file names one."""
        return self._trainer.plan.channel_axes

    @property
    def parameter_ranges(self) -> dict[str, tuple[float, float]]:
        """Range of each parameter: [low, high] of the job file, or the minimum and maximum of its values.

        Parameters for which a custom sampler needs no range are missing.
        """
        ranges = zip(self._trainer.plan.told, json.loads(self._trainer.plan.ranges or "[]"), strict=False)
        return {name: (low_high[0], low_high[1]) for name, low_high in ranges if low_high is not None}

    @property
    def parameter_texts(self) -> dict[str, tuple[str, ...]]:
        """The texts of each parameter that is a text; ``parameters`` has the position of the text in this list."""
        return dict(self._trainer.plan.texts)

    def when_drawn(self, batches: int, call: Callable[[], object]) -> None:
        """Call a function once, right after batch number `batches`, from 1, was drawn.

        If more batches have been drawn already, it is called at the next one.
        """
        self._trainer.when_drawn(batches, call)
