"""Drawing the parameters of every simulation, once, before the job starts."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.arrays import plain_floats
from mpidata.config import Job
from mpidata.config.parameter_table import TableError, read_table
from mpidata.config.parameters import AdaptiveKeys, BreedKeys, Points, PowerKeys
from mpidata.errors import JobFileError, as_line
from mpidata.sampling.samplers.adaptive import Adaptive
from mpidata.sampling.samplers.breed import Breed
from mpidata.sampling.samplers.power import Power
from mpidata.sampling.space import Space

__all__ = ["Drawn", "ask", "draw_at_once", "draw_parameters", "learns", "make_sampler", "sampler_code"]

Array = npt.NDArray[np.float64]
_MOST_SOBOL_BITS = 30


def draw_parameters(job: Job) -> Array:
    """Draw the parameters of all simulations of a job.

    Parameters
    ----------
    job : Job
        Its seed, sampler and space determine the parameters; equal jobs get equal parameters.

    Returns
    -------
    ndarray
        float64, shape (simulations + validation, number of columns), in the order of `job.columns`. The rows to train
        on come first; those for validation follow. For a sampler that learns, only those for validation, drawn
        uniformly: it draws the others while the job runs.

    Raises
    ------
    JobFileError
        The table or the sampler class returns no numbers, too few numbers, or fails.

    Notes
    -----
    Both parts cover the space. `uniform`, `halton` and `sobol` draw one sequence, and validation continues it: any
    stretch of these sequences is spread over the whole space, and the parameters to train on stay the same when
    `validation.count` changes. A part of a Latin hypercube is not a Latin hypercube, so that draws one for each part.
    The points of a `grid` are all trained on; validation is drawn uniformly from the box around them.
    """
    sampler = job.parameters.sampler
    table = _BUILT_IN.get(sampler, _from_class)(job)
    if len(table.T) < len(job.columns):  # no weights: all rows are drawn uniformly
        table = np.column_stack([table, np.ones(len(table))])
    return np.ascontiguousarray(table)


def _axes(job: Job) -> list[Any]:
    return list(job.parameters.space.values())


def _space(job: Job) -> Space:
    return Space(_axes(job))


def _uniform_points(job: Job, count: int) -> Array:
    return _space(job).scale(np.random.default_rng(job.seed).random((count, len(job.parameter_names))))


def _uniform(job: Job) -> Array:
    return _uniform_points(job, job.simulations + job.validation.count)


def _latin_hypercube(job: Job) -> Array:
    dimensions, counts = len(job.parameter_names), (job.simulations, job.validation.count)
    parts = [_qmc().LatinHypercube(dimensions, seed=g).random(n) for g, n in zip(_seeded(job), counts, strict=True)]
    return _space(job).scale(np.concatenate(parts))


def _halton(job: Job) -> Array:
    halton = _qmc().Halton(len(job.parameter_names), seed=_seeded(job)[0])
    return _space(job).scale(halton.random(job.simulations + job.validation.count))


def _sobol(job: Job) -> Array:
    dimensions, count = len(job.parameter_names), job.simulations + job.validation.count
    bits = (count - 1).bit_length()
    if bits > _MOST_SOBOL_BITS or dimensions > _qmc().Sobol.MAXDIM:
        raise JobFileError(
            f"{job.path.name}: 'parameters.sampler' is sobol, which has at most {2**_MOST_SOBOL_BITS} points of "
            f"{_qmc().Sobol.MAXDIM} parameters. Use halton or uniform."
        )
    # A power of two, then truncated: scipy warns about any other number of points.
    return _space(job).scale(_qmc().Sobol(dimensions, seed=_seeded(job)[0]).random_base2(bits)[:count])


def _seeded(job: Job) -> list[np.random.Generator]:
    """Return two independent generators."""
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(job.seed).spawn(2)]


def _qmc() -> Any:
    from scipy.stats import qmc  # takes a second, and the other samplers do not need it

    return qmc


def _grid(job: Job) -> Array:
    product = itertools.product(*(axis.all for axis in _axes(job)))
    points = np.array(list(product), dtype=np.float64).reshape(job.simulations, len(job.parameter_names))
    return np.concatenate([points, _uniform_points(job, job.validation.count)])


def _from_file(job: Job) -> Array:
    try:
        table = read_table(job.folder / str(job.parameters.path))
        constant = {
            name: np.full(table.rows, axis.all[0], np.float64)
            for name, axis in job.parameters.space.items()
            if isinstance(axis, Points) and axis.value is not None
        }
        space = job.parameters.space
        columns = [constant[name] if name in constant else table.numbers(name, space[name]) for name in space]
        values = np.stack(columns, axis=1)
    except (TableError, KeyError) as error:
        reason = error if isinstance(error, TableError) else f"it has no column {error}. Restore it."
        raise _refusal(job, "path", str(reason)) from None
    rows = [*range(job.simulations), *range(len(values) - job.validation.count, len(values))]
    if job.simulations + job.validation.count > len(values):
        raise _refusal(job, "path", f"it has {len(values)} rows, not {len(rows)}. Restore them.")
    for row, column in np.argwhere(~np.isfinite(values[rows])):
        cell = table.cell(job.parameter_names[column], rows[row])
        raise _refusal(job, "path", f"{cell}. Put a finite number there.")
    return values[rows]


def _from_class(job: Job) -> Array:
    sampler = make_sampler(job)
    if not learns(sampler):
        if job.parameters.learner_rank:
            raise _refusal(job, "sampler", "it has no 'observe', so it needs no learner. Set 'learner_rank: false'.")
        return ask(job, sampler, job.simulations + job.validation.count).table
    unbounded = [name for name, axis in job.parameters.space.items() if axis is None]
    if unbounded:
        raise _refusal(job, "sampler", f"it learns, so each parameter needs a range, also '{unbounded[0]}'. Add it.")
    ask(job, sampler, min(job.generation, job.simulations))  # to find its mistakes now; the job creates another one
    return _space(job).scale(_seeded(job)[1].random((job.validation.count, len(job.parameter_names))))


def make_sampler(job: Job) -> Any:
    """Create the sampler of a job whose `parameters.sampler` is a class, or learns.

    Raises
    ------
    JobFileError
        The class does not exist, or fails.
    """
    if job.parameters.sampler == "adaptive":
        return Adaptive(_space(job), job.seed, job.parameters.adaptive or AdaptiveKeys())
    if job.parameters.sampler == "breed":
        return Breed(_space(job), job.seed, job.parameters.breed or BreedKeys())
    if job.parameters.sampler == "power":
        return Power(_space(job), job.seed, job.parameters.power or PowerKeys())
    space = job.model_dump(mode="json", exclude_none=True)["parameters"]["space"]
    with sampler_code(job):
        made = _load_class(job)
        if not callable(made):
            raise TypeError(f"{job.parameters.sampler} is not a class, but {type(made).__name__}")
        try:
            with contextlib.suppress(ValueError):  # a class that is not written in Python may have none
                inspect.signature(made).bind(space=space, seed=job.seed)
        except TypeError as error:
            raise TypeError(f"it is called as {made.__name__}(space=..., seed=...): {error}") from None
        return made(space=space, seed=job.seed)


def draw_at_once(job: Job) -> Array:
    """Draw all rows, including those that a sampler that learns would draw later, when it knows losses.

    Returns and raises what `draw_parameters` does.
    """
    table = draw_parameters(job)
    more = job.simulations + job.validation.count - len(table)
    return np.concatenate([ask(job, make_sampler(job), more).table, table]) if more else table


def learns(sampler: Any) -> bool:
    """Whether a sampler observes the losses."""
    return callable(getattr(sampler, "observe", None))


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(Path(__file__).parents[1])


@contextlib.contextmanager
def sampler_code(job: Job) -> Iterator[None]:
    """Run code of the job's sampler, which may import from the job file's folder at any time.

    Raises
    ------
    JobFileError
        It raises an exception; the error names this and its place.
    """
    folder = str(job.folder)
    sys.path.insert(0, folder)
    try:
        yield
    except (Exception, SystemExit) as error:
        what = f"it fails with {type(error).__name__}: {as_line(error).rstrip('.')}"
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
        where = f", in {frames[-1].filename} line {frames[-1].lineno}. Correct it" if frames else ""
        raise _refusal(job, "sampler", f"{what}{where}.") from error
    finally:
        with contextlib.suppress(ValueError):  # the sampler's code may have removed it
            sys.path.remove(folder)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """The result of a sampler.

    Attributes
    ----------
    table : ndarray, float64, shape (n, number of the job's `columns`)
    more : list of (str, str)
        Rule and parent of each row; "" if the sampler gives none.
    """

    table: Array
    more: list[tuple[str, str]]


def ask(job: Job, sampler: Any, count: int) -> Drawn:
    """Let a sampler draw `count` rows.

    Raises
    ------
    JobFileError
        It fails, or returns something else.
    """
    names, what = job.parameter_names, f"sample({count})"
    with sampler_code(job):
        result = sampler.sample(count)
    if isinstance(result, tuple) and len(result) == 2 and any(isinstance(one, str) for one in np.ravel(result[1:])):
        fix = "Return only the array, (array, rules, parents), or these and the weights"
        raise _refusal(job, "sampler", f"{what} returns (array, rules). {fix}.")
    given = result if isinstance(result, tuple) and len(result) in (3, 4) else (result, None, None)
    result, rules, parents, weights = given if len(given) == 4 else (*given, None)
    try:
        table = plain_floats(result)
        weights = _weights(job, what, weights, count) if job.parameters.weights else np.empty((count, 0))
        rules = [""] * count if rules is None else [str(rule) for rule in rules]
        parents = [-1] * count if parents is None else [int(parent) for parent in parents]
    except (TypeError, ValueError) as error:
        why = str(error).rstrip(".")
        raise _refusal(job, "sampler", f"{what} returns no array of numbers: {why}. Correct it.") from None
    if table.shape != (count, len(names)):
        fix = f"Return shape {(count, len(names))}, one row per simulation, one column for each of {', '.join(names)}"
        raise _refusal(job, "sampler", f"{what} returns shape {table.shape}. {fix}.")
    for column, (name, axis) in enumerate(job.parameters.space.items()):
        texts = axis.texts if isinstance(axis, Points) else ()
        wrong = table[:, column][~np.isin(table[:, column], range(len(texts)))] if texts else ()
        for value in wrong[:1]:
            fix = f"Return the index of one of its texts, {', '.join(texts)}, from 0"
            raise _refusal(job, "sampler", f"{what} returns {value} for '{name}'. {fix}.")
    if not len(rules) == len(parents) == count:
        raise _refusal(job, "sampler", f"{what} returns {len(rules)} rules and {len(parents)} parents. Return {count}.")
    for row, column in np.argwhere(~np.isfinite(table)):
        value = table[row, column]
        raise _refusal(job, "sampler", f"row {row}, '{names[column]}' of its sample is {value}. Return finite numbers.")
    more = [(rule, str(parent) if parent >= 0 else "") for rule, parent in zip(rules, parents, strict=True)]
    return Drawn(np.column_stack([table, weights]), more)


def _weights(job: Job, what: str, given: Any, count: int) -> Array:
    """Check the weights that a sampler of a job with `parameters.weights` returns."""
    if given is None:
        fix = "Return (array, rules, parents, weights), or remove 'parameters.weights'"
        raise _refusal(job, "sampler", f"{what} returns no weights. {fix}.")
    weights = plain_floats(given)
    if weights.shape != (count,):
        raise _refusal(job, "sampler", f"{what} returns weights of shape {weights.shape}. Return shape {(count,)}.")
    for row in np.flatnonzero(~((weights >= 0) & np.isfinite(weights))):
        fix = "Return finite numbers of 0 or more"
        raise _refusal(job, "sampler", f"the weight of row {row} of its sample is {weights[row]}. {fix}.")
    return weights


_BUILT_IN: dict[str, Callable[[Job], Array]] = {
    "uniform": _uniform,
    "latin_hypercube": _latin_hypercube,
    "halton": _halton,
    "sobol": _sobol,
    "grid": _grid,
    "file": _from_file,
}


def _load_class(job: Job) -> Any:
    module, _, name = job.parameters.sampler.partition(":")
    return getattr(importlib.import_module(module), name)


def _refusal(job: Job, key: str, sentence: str) -> JobFileError:
    value = getattr(job.parameters, key)
    return JobFileError(f"{job.path.name}: 'parameters.{key}': {value}: {sentence}")
