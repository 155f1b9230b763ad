"""What a stream tells of the scales of its data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mpidata.trainer.field_statistics.statistics import FieldStatistics, read_statistics

if TYPE_CHECKING:
    from mpidata.trainer.trainer import Trainer

__all__ = ["StreamScales"]


class StreamScales:
    """The part of MPIStreamDataset that tells of scales."""

    _trainer: Trainer

    def statistics(self, axes: Mapping[str, int | None] | None = None) -> dict[str, FieldStatistics]:
        """Tell the statistics of each field over what all trainers have received, in a job with ``samples.statistics``.

        Parameters
        ----------
        axes : mapping of str to int or None, optional
            Axis of a field's channels, which must be that of the job file; None for one number for the whole field,
            although the job file names an axis.

        Returns
        -------
        dict of str to FieldStatistics
            `count`, `mean`, `std`, `min`, `max` and `not_finite`: float64 tensors, [C] for fields of which the job file
            names an axis, else [].

        Raises
        ------
        StreamError
            The job keeps no statistics, there is no such field, or its statistics are not kept by this axis.

        Notes
        -----
        The same on all trainers that have drawn as many batches; empty before the first, complete at the end of the
        stream. Each sample received counts once, however often it was drawn, and each step of windows; validation
        samples do not count. Not collective; any thread; does not block.
        """
        return read_statistics(self._trainer.plan, self._trainer.library, axes)

    @property
    def channel_axes(self) -> dict[str, int]:
        """Axis of the channels of the fields of which the job file names one in ``samples.statistics``."""
        return self._trainer.plan.channel_axes

    @property
    def parameter_ranges(self) -> dict[str, tuple[float, float]]:
        """Range of each parameter: [low, high] of the job file, or the least and greatest of its values.

        Without those for which a sampler of one's own needs none.
        """
        ranges = zip(self._trainer.plan.told, json.loads(self._trainer.plan.ranges or "[]"), strict=False)
        return {name: (low_high[0], low_high[1]) for name, low_high in ranges if low_high is not None}

    @property
    def parameter_texts(self) -> dict[str, tuple[str, ...]]:
        """The texts of each parameter that is a text; the number in ``parameters`` is the place of one in there."""
        return dict(self._trainer.plan.texts)

    def when_drawn(self, batches: int, call: Callable[[], object]) -> None:
        """Have something called once, right after batch number `batches`, from 1, was drawn.

        If more have been drawn already, with the next one.
        """
        self._trainer.when_drawn(batches, call)
