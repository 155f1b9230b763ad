"""Keys of a job file that have no effect beside the others: noted, not refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpidata.config.base import Problem
from mpidata.config.messages import shown

__all__ = ["drop_without_effect"]


def drop_without_effect(sections: dict[str, Any]) -> list[Problem]:
    """Take keys away that have no effect beside the others, and return a note about each.

    Parameters
    ----------
    sections : dict
        The valid sections of the job file by name; replaced where a key is taken away.
    """
    notes: list[Problem] = []
    for section, key, nothing, beside in _without_effect(sections):
        value = getattr(sections[section], key)
        if value != nothing:
            notes.append(((section, key), f"'{section}.{key}' is {shown(value)}: no effect with {beside}."))
            sections[section] = sections[section].model_copy(update={key: nothing})
    return notes


def _without_effect(sections: dict[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    """Tell which keys mean nothing here: section, key, the value that says nothing, and what makes it so."""
    buffer, parameters, solvers = (sections.get(name) for name in ("buffer", "parameters", "solvers"))
    if buffer is not None and buffer.policy == "fifo":
        yield "buffer", "watermark", 0, "'buffer.policy: fifo', which has none"
    if parameters is not None and parameters.sampler == "grid":
        yield "parameters", "count", None, "'parameters.sampler: grid', which runs all its points"
    if parameters is not None and parameters.sampler != "file":
        yield "parameters", "path", None, f"'parameters.sampler: {parameters.sampler}', as only 'file' reads a table"
    if solvers is not None and solvers.start == "spawn":
        yield "solvers", "spares", 0, "'solvers.start: spawn', where a new group takes the place of a lost one"
