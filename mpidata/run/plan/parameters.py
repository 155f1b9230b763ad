"""The plan's section on the simulations and their parameters."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["ParametersSection", "parameters_of", "texts_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParametersSection:
    """The simulations and their parameters.

    Simulations 0 to `simulations` - 1 are trained on, the next `validation` ones are not. `whole` names the parameters
    that are whole numbers, which programs receive without a decimal point; `texts` has the texts of those that are
    texts, whose numbers are indices into these; `ranges` is a JSON list of the ranges of all. With `weights` 1 there
    is one more at the end, the weight of the simulation, which programs do not receive.
    """

    simulations: int
    validation: int
    parameters: tuple[str, ...]
    whole: tuple[str, ...] = ()
    texts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    ranges: str = ""
    weights: int = 0

    @property
    def told(self) -> tuple[str, ...]:
        """The parameters without the weight."""
        return self.parameters[:-1] if self.weights else self.parameters


def parameters_of(job: Job) -> ParametersSection:
    """Plan the simulations of a job."""
    return ParametersSection(
        simulations=job.simulations,
        validation=job.validation.count,
        parameters=job.columns,
        whole=tuple(name for name, axis in job.parameters.space.items() if getattr(axis, "whole", False)),
        texts=texts_of(job),
        ranges=_ranges_of(job),
        weights=int(job.parameters.weights),
    )


def texts_of(job: Job) -> dict[str, tuple[str, ...]]:
    """Return the texts of the parameters that are texts, by name."""
    given = {name: getattr(axis, "texts", ()) for name, axis in job.parameters.space.items()}
    return {name: texts for name, texts in given.items() if texts}


def _ranges_of(job: Job) -> str:
    """Return the range of each parameter as JSON: [low, high], or null if the job file does not give it."""
    space, columns = job.parameters.space, {}
    if job.parameters.sampler == "file" and None in space.values():
        from mpidata.config.parameter_table import read_table  # loads numpy, which only tables need

        columns = read_table(job.folder / str(job.parameters.path)).columns
    return json.dumps([_range_of(axis, columns.get(name)) for name, axis in space.items()])


def _range_of(axis: Any, column: Any) -> list[float] | None:
    values = axis if isinstance(axis, tuple) else column if axis is None else axis.all
    return None if values is None else [float(min(values)), float(max(values))]
