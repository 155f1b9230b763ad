"""Checks of the sections of a job file against one another, and against other files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mpidata.config.base import Location, Problem
from mpidata.config.checks.fields import check_fields
from mpidata.config.checks.inference import check_inference
from mpidata.config.checks.launchers import check_no_launcher
from mpidata.config.checks.programs import (
    check_launcher,
    check_library,
    check_object,
    check_placeholders,
    check_program,
    check_starts,
)
from mpidata.config.data import Checkpoint
from mpidata.config.job import STREAM
from mpidata.config.parameters import Points
from mpidata.config.programs import Solvers
from mpidata.config.sentences import missing, sampler_problems, shown, suggestion

__all__ = ["check"]

_LONGEST_NAME = 255  # bytes; no common file system has longer names
_MOST_SIMULATIONS = 10_000_000
_MOST_NUMBERS = 100_000_000  # parameters of all simulations
_MOST_RANKS = 10_000_000
_MOST_CHANNELS = 4000  # of the statistics of all fields


def check(sections: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[list[Problem], dict[str, Any]]:
    """Run the checks that go beyond one section.

    Parameters
    ----------
    sections : mapping
        The valid sections of the job file by name; those with errors are missing.
    data : mapping
        The job file as it was read, so that an error in a section does not hide that its program is missing.

    Returns
    -------
    problems : list of (location, sentence)
    filled : dict
        Keys of `parameters` whose values come from the table of `sampler: file`.
    """
    problems: list[Problem] = []
    filled: dict[str, Any] = {}
    trainers, solvers, parameters = (_section(data, name) for name in ("trainers", "solvers", "parameters"))
    problems += _stream(data)
    problems += sampler_problems(parameters.get("sampler"))
    problems += _buffer(sections)
    problems += check_fields(sections)
    problems += _statistics(sections)
    problems += check_starts(sections)
    problems += _elastic(sections, data)
    problems += _replicas(sections)
    if "slurm" in sections:
        saving = sections.get("checkpoint") or Checkpoint()
        problems += sections["slurm"].problems(saving.within_s)
    folder = sections.get("folder")
    if not isinstance(folder, Path):
        return problems, filled
    if not os.path.isdir(folder):
        problems.append((("folder",), f"'folder' is {str(folder)!r}, which is not a folder. Correct or remove it."))
        return problems, filled
    problems += _output(sections, folder)
    problems += check_program(("trainers", "program"), trainers.get("program"), folder)
    problems += check_no_launcher(("trainers", "program"), trainers.get("program"))
    problems += check_program(("solvers", "program"), solvers.get("program"), folder)
    problems += check_object(("solvers", "function"), solvers.get("function"), folder)
    problems += check_object(("parameters", "sampler"), parameters.get("sampler"), folder)
    problems += check_inference(sections, data, folder)
    for i, logger in enumerate(sections.get("log", ())):
        problems += check_object(("log", i), logger, folder)
        if logger == "tensorboard" and find_spec("tensorboard") is None:
            fix = "which is not installed. Get it with: pip install 'mpidata[tensorboard]'"
            problems.append((("log", i), f"'log' has 'tensorboard', {fix}"))
    table = sections.get("parameters")
    if table is not None and table.sampler == "file" and table.path is not None:
        from mpidata.config.parameter_table import fit  # only tables need numpy and h5py

        found, filled = fit(table, sections["validation"].count if "validation" in sections else 0, folder)
        problems += found
    problems += _sizes(sections, filled)
    if "solvers" in sections:
        problems += _solvers(sections, filled, folder)
    return problems, filled


def _solvers(sections: Mapping[str, Any], filled: Mapping[str, Any], folder: Path) -> Iterator[Problem]:
    """Check what the program of the solvers reads and writes, and what starts it."""
    solvers, table = sections["solvers"], sections.get("parameters")
    slurm = sections.get("slurm")
    yield from check_library(solvers, folder)
    yield from check_launcher(solvers, folder, is_here=slurm is None or not slurm.setup)
    if solvers.output is not None:
        yield from check_object(("solvers", "output", "reader"), solvers.output.reader, folder)
        if solvers.case is not None and "fields" in sections:
            yield from solvers.output.problems(folder / solvers.case.folder, sections["fields"])
    misplaced = solvers.case is not None and list(solvers.case.misplaced(folder, sections.get("output", "runs")))
    if solvers.case is not None:
        yield from misplaced or ()
        if solvers.case.in_ is not None:
            yield from _can_be_made(("solvers", "case", "in"), solvers.case.in_, folder / solvers.case.in_)
    if table is None:
        return
    space = filled.get("space", table.space)
    points = {name: axis for name, axis in space.items() if isinstance(axis, Points)}
    between = "validation" in sections and sections["validation"].count  # these lie between the values of a grid
    whole = [name for name, axis in points.items() if axis.whole and not (axis.values and between)]
    texts = ["hosts", *(name for name, axis in points.items() if axis.texts)]
    yield from check_placeholders(solvers, ["simulation", *space], ["simulation", *whole], texts)
    yield from _names(solvers, list(space))
    if solvers.case is not None and not misplaced:  # else it may be a whole disk
        more = ["hosts"] if solvers.carried is not None else []
        yield from solvers.case.problems(folder, ["simulation", *space, *more], ["simulation", *whole], texts)


def _names(solvers: Solvers, names: list[str]) -> Iterator[Problem]:
    """Find names of parameters that have another meaning where they are used."""
    at = ("parameters", "space")
    taken = ["group"] * (solvers.function is not None)
    taken += ["try", "group", "ranks", "hosts"] * (solvers.case is not None and bool(solvers.case.fill))
    where = "the function's group" if solvers.function is not None else "what a filled file can name"
    for name in dict.fromkeys(taken):
        if name in names:
            yield at, f"'parameters.space.{name}': {name!r} is {where}. Rename the parameter."
    if solvers.carried is None:
        return
    for name in names:
        other = next((one for one in names[: names.index(name)] if one.upper() == name.upper()), None)
        if other is not None:
            said = f"'parameters.space.{name}' and {other!r} are both MPIDATA_PARAM_{name.upper()} to the program"
            yield at, f"{said}. Rename one of them."


def _stream(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Find keys that solvers need but are missing, or that only solvers need without solvers."""
    if "solvers" in data or "loaders" not in data:
        for key in ("solvers", "parameters", "fields"):
            if key not in data:
                yield (key,), missing((key,))
    else:
        for key in STREAM:
            if key in data:
                yield (key,), f"'{key}' is for the samples of solvers, but there are none. Remove it, or add 'solvers'."


def _elastic(sections: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what cannot be combined with elastic trainers."""
    trainers = sections.get("trainers")
    if trainers is None or not trainers.at_least:
        return
    at, said = ("trainers", "elastic"), "'trainers.elastic' is given, but"
    if "solvers" in data and sections.get("journal"):
        where = "with 'trainers.elastic' if 'solvers' send the samples. Remove one of the two"
        yield at, f"'journal' cannot be combined {where}."
    launch = sections.get("launch")
    if launch is not None and launch.fault_tolerance is False:
        yield at, f"{said} 'launch.fault_tolerance' is false, so a death ends the job. Remove one of them."
    slurm = sections.get("slurm")
    by_srun = launch is not None and launch.with_ == "srun"
    if by_srun or (slurm is not None and slurm.template == "heterogeneous"):
        why = "'launch.with' is 'srun'" if by_srun else "'slurm.template' is 'heterogeneous', which srun starts"
        yield at, f"{said} {why}: a death ends the job, because srun has no ULFM. Remove one of them."


def _replicas(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what cannot be combined with replicas of several ranks."""
    trainers = sections.get("trainers")
    if trainers is not None and trainers.ranks_per_replica > 1 and sections.get("servers") is not None:
        said = f"'trainers.ranks_per_replica' is {trainers.ranks_per_replica}, but 'servers' keep whole models"
        yield ("trainers", "ranks_per_replica"), f"{said}. Remove one of them."


def _buffer(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find a buffer without room for the windows of its watermark, and what cannot be combined with windows."""
    buffer, samples = sections.get("buffer"), sections.get("samples")
    window = 1 if samples is None else samples.window
    if window > 1 and sections.get("journal"):
        yield ("journal",), "'journal' is true, but windows cannot be replayed. Remove it, or 'samples.window'."
    if buffer is None or "fields" not in sections:
        return
    steps = buffer.holds(sections["fields"])
    need = max(1, buffer.watermark + (buffer.policy == "firo")) * window
    if steps is None or steps >= need or (window == 1 and isinstance(buffer.capacity, int)):
        return  # or Buffer has refused it
    said = f"{buffer.capacity}, a number of steps"
    if isinstance(buffer.capacity, str):
        size = sum(field.bytes({}) for field in sections["fields"].values())
        said = f"{buffer.capacity}, and a step has {size} bytes: it holds {steps} of them"
    what = f"Windows of {window} steps" if window > 1 else "Samples"
    yield (
        ("buffer", "capacity"),
        f"'buffer.capacity' is {said}. {what} with 'buffer.watermark' {buffer.watermark} need {need}. Raise it, or "
        "lower the watermark.",
    )


def _statistics(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find statistics by channels that the fields do not have, and what cannot be combined with statistics."""
    samples, fields = sections.get("samples"), sections.get("fields")
    if samples is None or samples.statistics is False:
        return
    if sections.get("journal"):
        yield ("journal",), "'journal' is true, but statistics are not replayed. Remove it, or 'samples.statistics'."
    if fields is None:
        return
    if not any(field.has_statistics for field in fields.values()):
        said = "'samples.statistics' is given, but no field has statistics"
        yield ("samples", "statistics"), f"{said}: none of bool, complex or `statistics: false` has. Remove it."
        return
    if samples.statistics is True:
        return
    channels = 0
    for name, axis in samples.statistics.items():
        at, key = ("samples", "statistics", name), f"'samples.statistics.{name}'"
        if name not in fields:
            fix = suggestion(name, fields) or f"The fields are {', '.join(fields)}."
            yield at, f"{key}: there is no field {name!r}. {fix}"
            continue
        if not fields[name].has_statistics:
            why = "indices have none" if fields[name].index else f"fields of {fields[name].dtype} have none"
            if fields[name].statistics is False:
                why = f"'fields.{name}.statistics' is false"
            yield at, f"{key}: the field has no statistics, because {why}. Remove it."
            continue
        shape = fields[name].shape
        if not -len(shape) <= axis < len(shape):
            yield at, f"{key} is {axis}, but the field has the shape {list(shape)}. Name one of its axes, from 0."
            continue
        if isinstance(shape[axis], str):
            yield at, f"{key} is {axis}, whose length differs between samples. Name another axis."
            continue
        channels += shape[axis]
        if channels > _MOST_CHANNELS:
            yield at, f"{key}: this makes {channels} channels, more than {_MOST_CHANNELS}. Leave out an axis."


def _section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = data.get(name)
    return section if isinstance(section, dict) else {}


def _output(sections: Mapping[str, Any], folder: Path) -> Iterator[Problem]:
    """Check that the folders of the runs and of the record exist or can be created."""
    record = sections.get("record")
    if "output" in sections:
        yield from _can_be_made(
            ("output",), sections["output"], folder / sections["output"] / sections.get("name", ".")
        )
    if record is not None and record.path is not None:
        yield from _can_be_made(("record", "path"), record.path, folder / record.path)


def _can_be_made(location: Location, value: str, path: Path) -> Iterator[Problem]:
    above = next(parent for parent in (path, *path.parents) if os.path.lexists(parent) or parent == parent.parent)
    said, fix = f"'{'.'.join(map(str, location))}' is {shown(value)}", "Name a folder, or one that can be created."
    too_long = [name for name in path.parts if len(os.fsencode(name)) > _LONGEST_NAME]
    if not os.path.isdir(above):
        yield location, f"{said}, but {above} is not a folder. {fix}"
    elif too_long:
        size = len(os.fsencode(too_long[0]))
        yield location, f"{said}, but {shown(too_long[0])} in its path has {size} bytes. Use at most {_LONGEST_NAME}."
    elif os.path.realpath(above).split("/")[1] in ("proc", "sys"):  # of the kernel: not even root can create any there
        yield location, f"{said}, but no folder can be created in {above}. {fix}"


def _sizes(sections: Mapping[str, Any], filled: Mapping[str, Any]) -> Iterator[Problem]:
    """Refuse sizes for which no machine has enough memory or ranks."""
    trainers, solvers, loaders, inference, servers, parameters = (
        sections.get(name) for name in ("trainers", "solvers", "loaders", "inference", "servers", "parameters")
    )
    ranks = 1 + (trainers.ranks + trainers.spares if trainers is not None else 0)
    ranks += (solvers.groups + solvers.spares) * solvers.ranks_per_group if solvers is not None else 0
    ranks += loaders.ranks + loaders.spares if loaders is not None else 0
    ranks += inference.ranks + inference.spares if inference is not None else 0
    ranks += 1 + parameters.learner_spares if parameters is not None and parameters.learner_rank else 0
    ranks += servers.ranks if servers is not None else 0
    if ranks > _MOST_RANKS:
        fix = "Lower 'trainers.ranks', 'solvers.groups', 'solvers.ranks_per_group', 'loaders.ranks', "
        fix += "'inference.ranks' or 'servers.ranks'."
        yield ("solvers",), f"the job has {ranks} ranks, more than {_MOST_RANKS}. {fix}"
    if parameters is None:
        return
    grid = parameters.sampler == "grid"
    count = parameters.grid_size if grid else filled.get("count", parameters.count) or 0
    count += sections["validation"].count if "validation" in sections else 0
    numbers = count * len(filled.get("space", parameters.space))
    if count > _MOST_SIMULATIONS or numbers > _MOST_NUMBERS:
        where = ("parameters", "space" if grid else "count")
        most = f"at most {_MOST_SIMULATIONS} simulations and {_MOST_NUMBERS} values of parameters"
        yield where, f"the job has {count} simulations with {numbers} values of parameters. Use {most}."
