"""The samples of a trainer without a job: from a record, or random."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from mpidata.dtypes import BFLOAT16
from mpidata.errors import StreamError
from mpidata.native import constants
from mpidata.run.plan import Field, Plan

if TYPE_CHECKING:
    from mpidata.record.dataset import RecordedDataset

__all__ = ["RandomSource", "Recorded", "Sample", "Source", "read_source", "write_made_up", "write_recorded"]

_LONGEST = 20
_PARAMETERS, _SOURCE = "parameters.npy", "source.json"


@dataclasses.dataclass(frozen=True)
class Sample:
    """A sample; `fields` (contiguous, in the `numpy_dtype` of their dtypes) and `numbers` are in the plan's order.

    Samples of one try of a simulation have the same constants.
    """

    simulation: int
    step: int
    time: float
    parameters: npt.NDArray[np.float64]
    fields: list[npt.NDArray[Any]]
    numbers: npt.NDArray[np.int64]
    by_try: int = 1


@dataclasses.dataclass(frozen=True)
class _Constants:
    """The fields with ``per: simulation`` of a simulation, their lengths, and which optional ones were put."""

    fields: dict[str, npt.NDArray[Any]]
    lengths: dict[str, int]
    given: dict[str, int]


_NO_CONSTANTS = _Constants({}, {}, {})


class Source(Protocol):
    """Yields each sample once, validation samples separately."""

    def samples(self, validation: bool) -> Iterator[Sample]:
        """Yield all samples in the order of the job's groups, which run in parallel."""

    def steps(self, simulation: int) -> int | None:
        """Return the number of steps of a simulation if all of them are yielded, else None."""


class RandomSource:
    """Samples of random numbers.

    Parameters
    ----------
    plan : Plan
        Determines shapes and dtypes. Floats and complex numbers are normally distributed; bools are 0 or 1, indices fit
        their length, other integers are 0 to 9, and optional fields that were not put are zeros. A length is 1 to 20 in
        each sample, or to its limit if smaller. Fields with ``per: simulation`` are the same in all its samples.
    parameters : ndarray of float64, shape (simulations + validation, n)
        Parameters of the simulations.
    steps : int
        Number of steps of each simulation.
    """

    def __init__(self, plan: Plan, parameters: npt.NDArray[np.float64], steps: int) -> None:
        self._plan, self._parameters, self._steps = plan, parameters, steps
        self._constants: dict[int, _Constants] = {}

    def samples(self, validation: bool) -> Iterator[Sample]:
        """Yield all samples; the same for the same seed."""
        plan, chance = self._plan, np.random.default_rng([self._plan.seed, validation])
        for beside in _side_by_side(plan, validation):
            if plan.constants:
                self._constants = {simulation: self._made_constants(simulation) for simulation in beside}
            for step in range(self._steps):
                for simulation in beside:
                    yield self._made(chance, simulation, step)

    def _made(self, chance: np.random.Generator, simulation: int, step: int) -> Sample:
        constants = self._constants.get(simulation, _NO_CONSTANTS)
        lengths = self._lengths(chance) | constants.lengths
        fields, given = [], {}
        for field in self._plan.fields:
            if field.per_simulation:
                fields.append(constants.fields[field.name])
                continue
            fields.append(_numbers(chance, field, lengths))
            if field.optional:
                given[field.name] = int(chance.integers(4))  # one in four was not put
                fields[-1][...] *= given[field.name] > 0
        given |= constants.given
        numbers = [*lengths.values(), *(given[field.name] for field in self._plan.fields if field.optional)]
        parameters = self._parameters[simulation]
        return Sample(simulation, step, float(step), parameters, fields, np.array(numbers, np.int64))

    def _lengths(self, chance: np.random.Generator) -> dict[str, int]:
        most = {length.name: min(length.at_most or _LONGEST, _LONGEST) for length in self._plan.lengths}
        return {name: int(chance.integers(1, longest + 1)) for name, longest in most.items()}

    def _made_constants(self, simulation: int) -> _Constants:
        chance = np.random.default_rng([self._plan.seed, 2, simulation])
        lengths, fields = self._lengths(chance), self._plan.constants
        values = {field.name: _numbers(chance, field, lengths) for field in fields}
        given = {field.name: int(chance.integers(4)) for field in fields if field.optional}
        own = {field.length: lengths[field.length] for field in fields if field.length}
        return _Constants(values, own, given)

    def steps(self, simulation: int) -> int:
        """Return the number of steps of each simulation."""
        return self._steps


def _unlike(plan: Plan, there: RecordedDataset) -> str:
    """Return how the record differs from the job file."""
    here = {field.name: field for field in plan.fields}
    names = [name for name in {**here, **there.fields} if here.get(name) != there.fields.get(name)]
    if names:
        return f"the fields {', '.join(names)} differ"
    if there.parameter_names != plan.told:
        return f"parameters {', '.join(there.parameter_names)}, but {', '.join(plan.told)} in the job file"
    if there.has_weights != bool(plan.weights):
        return f"parameters.weights {there.has_weights}, but {bool(plan.weights)} in the job file"
    return "the order of the fields or the texts of parameters differ"


class Recorded:
    """Samples of a record.

    Parameters
    ----------
    plan : Plan
        Determines the requested samples.
    folder : Path
        Folder of the record; raises StreamError if it has other fields or parameters, or no window.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        from mpidata.record.dataset import RecordedDataset

        self._plan = plan
        self._datasets = {what: RecordedDataset(folder, validation=what) for what in (False, True)}
        there = self._datasets[False]
        alike = tuple(there.fields.values()) == plan.fields and there.parameter_names == plan.told
        alike = alike and there.has_weights == bool(plan.weights)
        if not alike or there.parameter_texts != plan.texts:
            raise StreamError(
                f"{folder} is the record of a job with other fields or parameters: {_unlike(plan, there)}. Give the "
                "record of this job file's job, or its job file (`--job`)."
            )
        self._check_windows(folder)
        self._of: dict[int, list[int]] = {}
        for dataset in self._datasets.values():
            for index, simulation in enumerate(dataset.simulations.tolist()):
                self._of.setdefault(simulation, []).append(index)

    def _check_windows(self, folder: Path) -> None:
        from mpidata.record.dataset import RecordedDataset

        window, stride = self._plan.samples_window, self._plan.samples_stride
        if window > 1 and self._datasets[False] and not RecordedDataset(folder, window=window, stride=stride):
            raise StreamError(
                f"{folder} does not contain {window} steps of one simulation that are {stride} apart, which a window "
                f"of this job file needs. Give --set samples.stride=N if the job recorded every N-th step "
                "(`record.every`), or --set samples.window=1."
            )

    def samples(self, validation: bool) -> Iterator[Sample]:
        """Yield all samples."""
        dataset = self._datasets[validation]
        for beside in _side_by_side(self._plan, validation):
            for step in range(max((len(self._of.get(simulation, ())) for simulation in beside), default=0)):
                for simulation in beside:
                    indices = self._of.get(simulation, [])
                    if step < len(indices):
                        yield _sample(dataset[indices[step]], self._plan, dataset.by_try(indices[step]))

    def steps(self, simulation: int) -> int | None:
        """Return the number of steps if all were recorded, else None."""
        indices = self._of.get(simulation)
        dataset = self._datasets[simulation >= self._plan.simulations]
        if not indices or int(dataset[indices[-1]]["step"]) != len(indices) - 1:
            return None
        return len(indices)


def write_recorded(folder: Path, record: Path) -> None:
    """Make `read_source` return the samples of a record."""
    (folder / _SOURCE).write_text(json.dumps({"record": str(record)}), encoding="utf-8")


def write_made_up(folder: Path, parameters: npt.NDArray[np.float64], steps: int) -> None:
    """Make `read_source` return random samples: `steps` steps of each simulation, which have these parameters."""
    np.save(folder / _PARAMETERS, parameters)
    (folder / _SOURCE).write_text(json.dumps({"record": None, "steps": steps}), encoding="utf-8")


def read_source(folder: Path, plan: Plan) -> Source:
    """Return the source that a folder describes."""
    what = json.loads((folder / _SOURCE).read_text(encoding="utf-8"))
    if what["record"] is not None:
        return Recorded(plan, Path(what["record"]))
    return RandomSource(plan, np.load(folder / _PARAMETERS), what["steps"])


def _side_by_side(plan: Plan, validation: bool) -> Iterator[range]:
    """Yield the ranges of simulations that would run at the same time."""
    first, end = (plan.simulations, plan.simulations + plan.validation) if validation else (0, plan.simulations)
    for begin in range(first, end, plan.groups):
        yield range(begin, min(begin + plan.groups, end))


def _numbers(chance: np.random.Generator, field: Field, lengths: Mapping[str, int]) -> npt.NDArray[Any]:
    dtype, shape, kind = field.dtype, field.extents(lengths), constants.DTYPES[field.dtype].kind
    if kind == "c":
        parts = chance.standard_normal((*shape, 2))
        return np.asarray(parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    if kind == "f":
        normal = np.asarray(chance.standard_normal(shape, np.float64 if dtype == "float64" else np.float32))
        if dtype == BFLOAT16:
            return (normal.view(np.uint32) >> 16).astype(np.uint16)
        return normal.astype(dtype, copy=False)
    return np.asarray(chance.integers(0, 2 if kind == "b" else lengths.get(field.index, 10), shape, dtype))


def _sample(recorded: dict[str, Any], plan: Plan, by_try: int) -> Sample:
    from mpidata.tensors import WEIGHT, array_of

    fields = [np.ascontiguousarray(array_of(recorded[field.name])) for field in plan.fields]
    lengths = {length.name: int(recorded[length.name]) for length in plan.lengths}
    assert all(field.size == math.prod(of.extents(lengths)) for field, of in zip(fields, plan.fields, strict=True))
    simulation, step, time = int(recorded["simulation"]), int(recorded["step"]), float(recorded["time"])
    numbers = np.array([int(recorded[name]) for name in plan.numbers], np.int64)
    parameters = recorded["parameters"].numpy()
    if plan.weights:
        parameters = np.append(parameters, recorded[WEIGHT].item())
    return Sample(simulation, step, time, parameters, fields, numbers, by_try)
