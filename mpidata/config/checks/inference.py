"""Checks of inference ranks: whether their files exist, and what cannot be combined with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpidata.config.base import Problem
from mpidata.config.checks.programs import check_object
from mpidata.config.sentences import shown

__all__ = ["check_inference"]


def check_inference(sections: Mapping[str, Any], data: Mapping[str, Any], folder: Path) -> Iterator[Problem]:
    """Check the function, the weights, and sections that cannot be combined with inference ranks."""
    section = data.get("inference")
    if not isinstance(section, dict):
        return
    yield from check_object(("inference", "function"), section.get("function"), folder)
    weights = section.get("weights")
    if isinstance(weights, str) and weights and not os.path.isfile(folder / weights):
        said = f"'inference.weights' is {shown(weights)}, but {folder / weights} does not exist"
        yield ("inference", "weights"), f"{said}. Write it with torch.save, or correct the name."
    yield from _beside(sections, data)


def _beside(sections: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Problem]:
    at, said = ("inference",), "'inference' is given, but"
    if "solvers" not in data:
        yield at, f"{said} there are no 'solvers' to use it. Remove it, or add them."
    if sections.get("journal"):
        yield (
            at,
            f"{said} 'journal' is true: answers are not in the journal, so a replay cannot repeat them. Remove one.",
        )
