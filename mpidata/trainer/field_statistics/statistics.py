"""The statistics that a trainer keeps of its stream's fields."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.native.library import Library, check
from mpidata.native.moments import Moments, column, merge, numbers
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Field, Plan

if TYPE_CHECKING:
    import torch

__all__ = ["FieldStatistics", "read_statistics", "write_statistics"]


@dataclasses.dataclass(frozen=True)
class FieldStatistics:
    """Statistics of a field; each is a float64 tensor, [C] with channels, otherwise [].

    Attributes
    ----------
    count : torch.Tensor
        Number of values.
    mean, std : torch.Tensor
        Mean and population standard deviation (divided by the number of values). NaN if there are no values.
    min, max : torch.Tensor
        Minimum and maximum. inf and -inf if there are no values.
    not_finite : torch.Tensor
        Number of values that are NaN, infinite or beyond 1e150; they count in no other figure.
    """

    count: torch.Tensor
    mean: torch.Tensor
    std: torch.Tensor
    min: torch.Tensor
    max: torch.Tensor
    not_finite: torch.Tensor


def read_statistics(
    plan: Plan, library: Library, axes: Mapping[str, int | None] | None = None
) -> dict[str, FieldStatistics]:
    """Return what `MPIStreamDataset.statistics` returns; raises StreamError or LibraryError like it."""
    found = _by_field(plan, library)
    for name, axis in (axes or {}).items():
        field = next((field for field in plan.fields if field.name == name), None)
        if field is None:
            names = ", ".join(field.name for field in plan.fields)
            raise StreamError(f"statistics: there is no field {name!r}. The fields are {names}.")
        if name not in found:
            raise StreamError(f"statistics: {name!r} is {field.dtype} and has none. See 'fields' in the job file.")
        if axis is None:
            found[name] = merge([row[None] for row in found[name]])
        elif _counted_from_the_front(field, axis) != plan.channel_axes.get(name):
            raise StreamError(
                f"statistics: {name!r} has none for the channels of axis {axis}. Name the axis in the job file, "
                f"'samples: {{statistics: {{{name}: {axis}}}}}', because solvers compute them when they put samples."
            )
    whole = {name for name in found if plan.channel_axes.get(name) is None or (axes and axes.get(name, 0) is None)}
    return {name: _statistics(of[0] if name in whole else of) for name, of in found.items()}


def write_statistics(plan: Plan, library: Library) -> None:
    """Write statistics.json in the run folder, by field; numbers that are not finite become null."""
    told = {
        name: {
            key: [number if np.isfinite(number) else None for number in values.tolist()]
            for key, values in _columns(of).items()
        }
        for name, of in _by_field(plan, library).items()
    }
    text = json.dumps({"channel_axes": plan.channel_axes, "fields": told}, indent=1)
    with contextlib.suppress(OSError):  # the script can also ask for them
        RunFolder(plan.run).statistics.write_text(text + "\n", encoding="utf-8")


def _by_field(plan: Plan, library: Library) -> dict[str, Moments]:
    if not plan.statistics:
        raise StreamError("The job keeps no statistics. Add 'samples: {statistics: true}' to the job file.")
    channels = plan.channels
    moments = np.empty((plan.n_moments, len(numbers())))
    check(library, library.mpidata_trainer_scales(moments.ctypes.data))
    parts = np.split(moments, np.cumsum(list(channels.values()))[:-1])
    return dict(zip(channels, parts, strict=True))


def _counted_from_the_front(field: Field, axis: int) -> int:
    return axis + len(field.shape) if axis < 0 else axis


def _statistics(of: Moments) -> FieldStatistics:
    import torch

    return FieldStatistics(**{name: torch.from_numpy(values) for name, values in _columns(of).items()})


def _columns(of: Moments) -> dict[str, npt.NDArray[np.float64]]:
    """Compute the columns of FieldStatistics without torch, which cannot be imported while the script ends."""
    count = column(of, "count")
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, column(of, "mean"), np.nan)
        std = np.sqrt(column(of, "m2") / count)
    columns = (count, mean, std, *(column(of, name) for name in ("least", "greatest", "not_finite")))
    names = (field.name for field in dataclasses.fields(FieldStatistics))
    return {name: np.array(values, np.float64) for name, values in zip(names, columns, strict=True)}
