"""What a job file says about other files, and what its sections say about one another."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.config.base import Location, Problem
from mpidata.config.messages import sampler_problems, suggestion
from mpidata.plan import find_program

__all__ = ["check"]


def check(sections: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[list[Problem], dict[str, Any]]:
    """Check the sections that are valid by themselves.

    Parameters
    ----------
    sections : mapping
        The valid sections of the job file by name; those with errors are missing.
    data : mapping
        The job file as it was read.

    Returns
    -------
    problems : list of (location, sentence)
    filled : dict
        Keys of `parameters` whose values come from the table of `sampler: file`.
    """
    problems: list[Problem] = []
    filled: dict[str, Any] = {}
    given = data.get("parameters")
    problems += sampler_problems(given.get("sampler") if isinstance(given, dict) else None)
    folder = sections.get("folder")
    if folder is None:
        return problems, filled
    if not folder.is_dir():
        problems.append((("folder",), f"'folder' is {str(folder)!r}, which is no folder. Correct or remove it."))
        return problems, filled
    if "trainers" in sections:
        problems += _program(("trainers", "program"), sections["trainers"].program, folder)
    if "solvers" in sections:
        problems += _solvers(sections["solvers"], folder)
    if "parameters" in sections:
        parameters = sections["parameters"]
        if ":" in parameters.sampler:
            problems += _object(("parameters", "sampler"), parameters.sampler, folder)
        elif parameters.sampler == "file" and "validation" in sections:
            from mpidata.config.table import fit  # numpy and h5py are needed for tables only

            found, filled = fit(parameters, sections["validation"].count, folder)
            problems += found
    return problems, filled


def _solvers(solvers: Any, folder: Path) -> Iterator[Problem]:
    if solvers.program is not None:
        yield from _program(("solvers", "program"), solvers.program, folder)
    if solvers.function is not None:
        yield from _object(("solvers", "function"), solvers.function, folder)
        if solvers.ranks_per_group > 1:
            yield (
                ("solvers", "ranks_per_group"),
                f"'solvers.ranks_per_group' is {solvers.ranks_per_group}, but a function runs on one rank. Set it to 1, "
                "or use 'solvers.program'.",
            )


def _program(location: Location, program: Sequence[str], folder: Path) -> Iterator[Problem]:
    name = ".".join(map(str, location))
    executable, *rest = find_program(program, folder)
    here = folder / executable
    if here.is_file() and not os.access(here, os.X_OK):
        yield location, f"'{name}' names {program[0]!r}, which is not executable. Run `chmod +x {here}`."
    elif "/" in executable:
        if not here.is_file():
            yield location, f"'{name}' names {program[0]!r}, but {os.path.normpath(here)} does not exist. Build or correct it."
    elif shutil.which(executable) is None:
        yield location, f"'{name}' names {program[0]!r}, which is neither in {folder} nor on PATH. Build or correct it."
    script = rest[0] if rest and executable == sys.executable else "-"
    if not script.startswith("-") and not (folder / script).exists():
        yield location, f"'{name}' runs {script!r}, but {folder / script} does not exist. Correct the name."


def _object(location: Location, spec: str, folder: Path) -> Iterator[Problem]:
    """Look for `module:name` without running any of it."""
    key = ".".join(map(str, location))
    module, _, name = spec.partition(":")
    search, found = [str(folder), *sys.path], None
    parts = module.split(".")
    for depth in range(len(parts)):
        found = importlib.machinery.PathFinder.find_spec(".".join(parts[: depth + 1]), search)
        if found is None:
            yield location, f"'{key}' is {spec!r}, but there is no module {module!r} in {folder}. Correct the name."
            return
        search = list(found.submodule_search_locations or ())
    names = _names(found.origin) if found is not None and found.origin else None
    if names is not None and name not in names:
        fix = suggestion(name, names) or "Correct the name."
        yield location, f"'{key}' is {spec!r}, but {found.origin if found else module} has no {name!r}. {fix}"


def _names(source: str) -> set[str] | None:
    """Names that a Python file may define, or None if only running it would tell."""
    if not source.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(source).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None  # Python itself says this best
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return None
            names.add((node.asname or node.name).partition(".")[0])
    return names
