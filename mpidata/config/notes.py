"""Keys of a job file that have no effect with the others, or an old name: noted, not refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpidata.config.base import Location, Origin, Problem
from mpidata.config.data import Buffer
from mpidata.config.parameters import DEPRECATED, LEARNING, AdaptiveKeys
from mpidata.config.sentences import shown

__all__ = [
    "RENAMED",
    "deprecated_samplers",
    "drop_without_effect",
    "fit_watermark",
    "never_learns",
    "new_name",
    "rename",
    "unknown_to_program",
]

RENAMED: dict[str, str] = {}
"""Old name of a key -> its new name, both as for `--set`; removed one release later."""


def drop_without_effect(sections: dict[str, Any]) -> list[Problem]:
    """Remove keys that have no effect with the others, and return a note about each.

    Parameters
    ----------
    sections : dict
        The valid sections of the job file by name; replaced if a key is removed.
    """
    notes: list[Problem] = []
    for section, key, nothing, beside in _without_effect(sections):
        value = getattr(sections[section], key)
        if value != nothing:
            notes.append(((section, key), f"'{section}.{key}' is {shown(value)}: no effect with {beside}."))
            sections[section] = sections[section].model_copy(update={key: nothing})
    return notes


def unknown_to_program(sections: dict[str, Any], folder: Path) -> list[Problem]:
    """Return a note about each parameter that a program that only writes files does not get; all must be valid."""
    solvers, parameters = sections.get("solvers"), sections.get("parameters")
    if solvers is None or solvers.output is None or parameters is None:
        return []
    told = set(re.findall(r"\{(\w+)[:}]", " ".join(solvers.program or ())))
    if (case := solvers.case) is not None:
        opens = re.escape(case.marks[0])
        files = case.files(folder)
        for name in files.filled:
            text = (files.top / name).read_text("utf-8", "replace")
            told |= set(re.findall(rf"{opens}\s*(\w+)", text))
    where = "in no file of 'solvers.case.fill' and no argument of 'solvers.program'"
    return [
        (
            ("parameters", "space", name),
            f"'parameters.space.{name}' occurs {where}: the program gets it only as MPIDATA_PARAM_{name.upper()}.",
        )
        for name in parameters.space
        if name not in told
    ]


def never_learns(sections: dict[str, Any]) -> list[Problem]:
    """Return a note if all simulations are drawn before a sampler that learns starts to learn."""
    parameters = sections.get("parameters")
    if parameters is None or parameters.sampler != "adaptive" or parameters.count is None:
        return []
    start = (parameters.adaptive or AdaptiveKeys()).start
    if start < parameters.count:
        return []
    said = f"'parameters.sampler' is adaptive, which learns from simulation {start} on ('parameters.adaptive.start')"
    return [(("parameters", "sampler"), f"{said}, but there are only {parameters.count}: all are drawn as with sobol.")]


def deprecated_samplers(sections: dict[str, Any]) -> list[Problem]:
    """Return a note if the sampler is one of `DEPRECATED`."""
    parameters = sections.get("parameters")
    if parameters is None or parameters.sampler not in DEPRECATED:
        return []
    said = f"'parameters.sampler' is {parameters.sampler}, which is deprecated: models trained with it were not better"
    return [(("parameters", "sampler"), f"{said}. The next release will not have it. Use sobol, or adaptive.")]


def fit_watermark(sections: dict[str, Any]) -> None:
    """Let the default watermark count windows or samples while the capacity counts steps or bytes."""
    samples, buffer = sections.get("samples"), sections.get("buffer", Buffer())
    if samples is None or "watermark" in buffer.model_fields_set:
        return
    steps = buffer.holds(sections.get("fields", {})) or 0
    watermark = 0 if buffer.policy == "fifo" else steps // 10 // samples.window
    if watermark != buffer.watermark:
        sections["buffer"] = buffer.model_copy(update={"watermark": watermark})


def _without_effect(sections: dict[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    """Return the keys without effect: section, key, the value to set instead, and the reason."""
    buffer, parameters, solvers, loaders, samples = (
        sections.get(name) for name in ("buffer", "parameters", "solvers", "loaders", "samples")
    )
    trainers = sections.get("trainers")
    if trainers is not None and not trainers.at_least and not sections.get("servers"):
        yield "trainers", "timeout_s", 600.0, "no 'trainers.elastic' and no 'servers'"
    if buffer is not None and buffer.policy == "fifo":
        yield "buffer", "watermark", 0, "'buffer.policy: fifo', which has no watermark"
    if buffer is not None and buffer.policy != "reservoir":
        yield "buffer", "repeats", None, f"'buffer.policy: {buffer.policy}', which draws each sample once"
    if buffer is not None and buffer.policy == "reservoir" and buffer.repeats is not None:
        yield "buffer", "tail", "drop", "'buffer.repeats', which determines the number of batches"
    if parameters is not None and parameters.sampler == "grid":
        yield "parameters", "count", None, "'parameters.sampler: grid', which runs all its points"
    if parameters is not None and parameters.sampler != "file":
        yield "parameters", "path", None, f"'parameters.sampler: {parameters.sampler}': only 'file' reads a table"
    for name in LEARNING:
        if parameters is not None and parameters.sampler != name:
            yield "parameters", name, None, f"'parameters.sampler: {parameters.sampler}', which is a different one"
    if parameters is not None and parameters.sampler not in LEARNING and ":" not in parameters.sampler:
        yield "parameters", "generation", None, f"'parameters.sampler: {parameters.sampler}', which does not learn"
    if parameters is not None and not parameters.learner_rank:
        yield "parameters", "learner_spares", 0, "'parameters.learner_rank', without which there is no learner"
    if samples is not None and samples.window == 1:
        yield "samples", "stride", 1, "'samples.window: 1', where a sample is one step"
        yield "samples", "run", None, "'samples.window: 1', where a sample is one step"
    if solvers is not None and solvers.start == "spawn":
        yield "solvers", "spares", 0, "'solvers.start: spawn', with which a new group replaces a lost one"
    if loaders is not None and loaders.start == "spawn":
        yield "loaders", "spares", 0, "'loaders.start: spawn', with which a new loader replaces a lost one"


def new_name(keys: Location, notes: list[Problem]) -> Location:
    """Return the present name of a key, and add a note if it was an old one."""
    for old, new in RENAMED.items():
        before = tuple(old.split("."))
        if keys[: len(before)] == before:
            now = (*new.split("."), *keys[len(before) :])
            notes.append((now, f"'{old}' is now called '{new}'. Rename it: the next release removes the old name."))
            return now
    return keys


def rename(data: dict[str, Any], origins: dict[Location, Origin], notes: list[Problem]) -> list[Problem]:
    """Replace the old names of keys of a job file.

    Parameters
    ----------
    data : dict
        The job file; changed.
    origins : dict
        Where each key was set; changed.
    notes : list of Problem
        Receives a note about each old name.

    Returns
    -------
    list of Problem
        Keys that occur under both names.
    """
    problems: list[Problem] = []
    for old, new in RENAMED.items():
        before, now = tuple(old.split(".")), tuple(new.split("."))
        holder = _mapping(data, before[:-1])
        if holder is None or before[-1] not in holder:
            continue
        target = _mapping(data, now[:-1], make=True)
        if target is None or now[-1] in target:
            problems.append((before, f"'{old}' and '{new}' are the same key. Remove '{old}', its old name."))
            continue
        target[now[-1]] = holder.pop(before[-1])
        for at in [at for at in origins if at[: len(before)] == before]:
            origins[(*now, *at[len(before) :])] = origins.pop(at)
        new_name(before, notes)
    return problems


def _mapping(data: dict[str, Any], keys: Location, make: bool = False) -> dict[str, Any] | None:
    """Find the mapping that holds a key, or create it; None if there is none, or another value."""
    for key in keys:
        if make and data.get(str(key)) is None:
            data[str(key)] = {}
        inner = data.get(str(key))
        if not isinstance(inner, dict):
            return None
        data = inner
    return data
