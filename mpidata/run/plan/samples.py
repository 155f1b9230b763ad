"""What a plan says of the fields, and of the samples that are made of them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mpidata.native import constants

if TYPE_CHECKING:
    from mpidata.config import Job
    from mpidata.config.data import FieldEntry

__all__ = ["Field", "SamplesSection", "samples_of"]


@dataclasses.dataclass(frozen=True)
class Field:
    """A declared field: its name, dtype (`float32`, ...) and shape (C order, () for a scalar)."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the field in one step."""
        return math.prod(self.shape) * constants.DTYPES[self.dtype].size


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplesSection:
    """The fields, and the samples.

    A sample is a window of `samples_window` steps, `samples_stride` apart; `samples_run` of them that begin one after
    the other belong to one trainer. `statistics` has for each field the axis of the channels by which its statistics
    are kept, -1 for those of the whole field, or -2 for none, and is empty where none are kept of any.
    """

    fields: tuple[Field, ...]
    samples_window: int = 1
    samples_stride: int = 1
    samples_run: int = 1
    statistics: str = ""

    @property
    def span(self) -> int:
        """Steps from the first one of a sample to its last."""
        return (self.samples_window - 1) * self.samples_stride

    @property
    def n_moments(self) -> int:
        """Number of channels of all fields, as of the statistics; 0 where there are none."""
        return sum(self.channels.values())

    @property
    def channels(self) -> dict[str, int]:
        """Number of channels of each field that has statistics, 1 for those of the whole field."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return {
            field.name: field.shape[axis] if axis >= 0 else 1 for field, axis in axes if axis != constants.NO_STATISTICS
        }

    @property
    def channel_axes(self) -> dict[str, int]:
        """Axis of the channels of the fields whose statistics are kept by channel."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return {field.name: axis for field, axis in axes if axis >= 0}


def samples_of(job: Job) -> SamplesSection:
    """Plan the samples of a job."""
    return SamplesSection(
        fields=tuple(Field(name, field.dtype, field.shape) for name, field in job.fields.items()),
        samples_window=job.samples.window,
        samples_stride=job.samples.stride,
        samples_run=job.samples.run_steps,
        statistics=_statistics_of(job),
    )


def _statistics_of(job: Job) -> str:
    """Write down what statistics each field has, as in `SamplesSection.statistics`."""
    asked = job.samples.statistics
    if asked is False:
        return ""
    axes = {} if asked is True else asked

    def of(name: str, field: FieldEntry) -> int:
        if not field.has_statistics:
            return constants.NO_STATISTICS
        return axes[name] % len(field.shape) if name in axes else constants.WHOLE_FIELD

    return " ".join(str(of(name, field)) for name, field in job.fields.items())
