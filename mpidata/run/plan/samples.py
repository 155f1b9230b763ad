"""The plan's section on the fields, and on the samples that consist of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mpidata.native import constants

if TYPE_CHECKING:
    from mpidata.config import Job
    from mpidata.config.data import FieldEntry

_NO_LENGTHS: Mapping[str, int] = {}

__all__ = ["Field", "Length", "SamplesSection", "samples_of"]


@dataclasses.dataclass(frozen=True)
class Length:
    """A length, which differs between samples, at most `at_most`; 0: no limit."""

    name: str
    at_most: int = 0


@dataclasses.dataclass(frozen=True)
class Field:
    """A declared field: its name, dtype (`float32`, ...) and shape (C order, () for a scalar).

    One extent may be the name of a length. `index`: the length into which the values index, from `base`; "": none.
    An `optional` field need not be put in each step. One that is `per_simulation` is put once, before the first step.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    index: str = ""
    base: int = 0
    optional: bool = False
    per_simulation: bool = False

    @property
    def length(self) -> str:
        """Name of its length, which differs between samples; empty if it has none."""
        return next((extent for extent in self.shape if isinstance(extent, str)), "")

    def extents(self, lengths: Mapping[str, int] = _NO_LENGTHS) -> tuple[int, ...]:
        """Return the shape in a sample of these lengths; raises KeyError if one is missing."""
        return tuple(lengths[extent] if isinstance(extent, str) else extent for extent in self.shape)

    @property
    def row(self) -> int:
        """Number of elements; of a field with a length, per index along it."""
        return math.prod(self.extents({self.length: 1}))

    @property
    def nbytes(self) -> int:
        """Bytes of the field in one step; of one with a length, per index along it."""
        return self.row * constants.DTYPES[self.dtype].size


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplesSection:
    """The fields, and the samples.

    A sample is a window of `samples_window` steps, `samples_stride` apart; `samples_run` consecutive ones belong to
    one trainer. `statistics` has for each field the axis of the channels by which its statistics are kept, -1 for those
    of the whole field, or -2 for none, and is empty if none are kept.
    """

    fields: tuple[Field, ...]
    lengths: tuple[Length, ...] = ()
    samples_window: int = 1
    samples_stride: int = 1
    samples_run: int = 1
    statistics: str = ""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of a sample's own numbers: its lengths, then for each optional field whether it was put."""
        return (*(length.name for length in self.lengths), *(f"{f.name}_given" for f in self.fields if f.optional))

    @property
    def constants(self) -> tuple[Field, ...]:
        """The fields that are put once per simulation."""
        return tuple(field for field in self.fields if field.per_simulation)

    @property
    def step_fields(self) -> tuple[Field, ...]:
        """The fields that are put in each step."""
        return tuple(field for field in self.fields if not field.per_simulation)

    @property
    def span(self) -> int:
        """Number of steps from the first step of a sample to its last."""
        return (self.samples_window - 1) * self.samples_stride

    @property
    def n_moments(self) -> int:
        """Number of channels of all fields for the statistics; 0 if there are none."""
        return sum(self.channels.values())

    @property
    def channels(self) -> dict[str, int]:
        """Number of channels of each field that has statistics; 1 for statistics of the whole field."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return {
            field.name: field.extents({field.length: 0})[axis] if axis >= 0 else 1
            for field, axis in axes
            if axis != constants.NO_STATISTICS
        }

    @property
    def channel_axes(self) -> dict[str, int]:
        """Axis of the channels of the fields whose statistics are kept by channel."""
        axes = zip(self.fields, map(int, self.statistics.split()), strict=False)
        return {field.name: axis for field, axis in axes if axis >= 0}


def samples_of(job: Job) -> SamplesSection:
    """Plan the samples of a job."""
    return SamplesSection(
        fields=tuple(
            Field(
                name, field.dtype, field.shape, field.index or "", field.base, field.optional, field.per == "simulation"
            )
            for name, field in job.fields.items()
        ),
        lengths=_lengths_of(job),
        samples_window=job.samples.window,
        samples_stride=job.samples.stride,
        samples_run=job.samples.run_steps,
        statistics=_statistics_of(job),
    )


def _lengths_of(job: Job) -> tuple[Length, ...]:
    """List the lengths in the order in which the fields name them."""
    names = dict.fromkeys(field.length for field in job.fields.values() if field.length is not None)
    return tuple(Length(name, job.lengths[name].at_most or 0 if name in job.lengths else 0) for name in names)


def _statistics_of(job: Job) -> str:
    """Return which statistics each field has, as in `SamplesSection.statistics`."""
    asked = job.samples.statistics
    if asked is False:
        return ""
    axes = {} if asked is True else asked

    def of(name: str, field: FieldEntry) -> int:
        if not field.has_statistics:
            return constants.NO_STATISTICS
        return axes[name] % len(field.shape) if name in axes else constants.WHOLE_FIELD

    return " ".join(str(of(name, field)) for name, field in job.fields.items())
