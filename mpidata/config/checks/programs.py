"""Checks of programs and functions: whether they exist, and what their arguments contain."""

from __future__ import annotations

import ast
import importlib.machinery
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.config.base import Location, Problem
from mpidata.config.case import wrong_mark
from mpidata.config.programs import Solvers, find_program, is_object_name
from mpidata.config.sentences import shown, suggestion
from mpidata.mpi.carried_launcher import is_linked_with, most_steps, starts_by_srun

__all__ = [
    "check_launcher",
    "check_library",
    "check_object",
    "check_placeholders",
    "check_program",
    "check_starts",
]

_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>\w[\w:.+-]*)\}|\{|\}")
_OF_LAUNCHER = ("ranks", "hosts", "nodes")
_OF_SHELL = re.compile(r"[<>].*|&>.*|\d>>?(&[\d-]|/dev/null)?|\d<|\|\|?|\|&|&&?|;;?", re.DOTALL)


def check_starts(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Compare the number of starts of a carried program by srun with what Slurm allows."""
    solvers, parameters = sections.get("solvers"), sections.get("parameters")
    if solvers is None or parameters is None or solvers.carried is None or solvers.lifetime == "pool":
        return
    if solvers.carried.launcher != "auto" or solvers.carried.ranks == 1 or not starts_by_srun():
        return
    most = most_steps()
    if most is not None and (parameters.count or 0) > most:
        said = f"'solvers.lifetime' is 'simulation': srun would start the program {parameters.count} times"
        fix = "Write 'lifetime: pool', or the mpirun of the program's MPI as 'solvers.carried.launcher'."
        yield ("solvers", "lifetime"), f"{said}, but Slurm lets a job make {most} steps (MaxStepCount). {fix}"


def check_placeholders(solvers: Solvers, known: list[str], whole: list[str], texts: list[str]) -> Iterator[Problem]:
    """Check `{name}` in the arguments of a program that is started for each simulation.

    `whole`: the names of whole numbers; `texts`: the names of texts.
    """
    if solvers.lifetime != "simulation" or solvers.program is None:
        return
    for number, argument in enumerate(solvers.program[1:], start=1):
        key = f"'solvers.program[{number}]' is {argument!r}"
        for brace in _BRACES.finditer(argument):
            name = brace["name"]
            if name is None and brace[0] not in ("{{", "}}"):
                fix = f"Write '{{name}}' for the value of a parameter, and '{2 * brace[0]}' for a brace"
                yield ("solvers", "program", number), f"{key}. {fix}."
            elif name is not None and (plain := name.partition(":")[0]) not in known:
                fix = suggestion(plain, known) or f"The names are {', '.join(known)}."
                yield ("solvers", "program", number), f"{key}, but there is no parameter {plain!r}. {fix}"
            elif name is not None and (wrong := wrong_mark(name, known, whole, texts, "{}")):
                yield ("solvers", "program", number), f"{key}, {wrong}"


def check_launcher(solvers: Solvers, folder: Path, is_here: bool) -> Iterator[Problem]:
    """Check the launcher of a carried program, and the names in braces in its words.

    `is_here` is false if only the job's own shell, which loads modules later, can find it.
    """
    launcher = solvers.carried.launcher if solvers.carried is not None else "none"
    if isinstance(launcher, str):
        return
    location = ("solvers", "carried", "launcher")
    executable = find_program(launcher, folder)[0]
    yield from _for_a_shell(location, launcher)
    if (is_here or "/" in executable) and shutil.which(executable) is None:
        said = f"'solvers.carried.launcher' begins with {shown(launcher[0])}, which is not on PATH"
        fix = "Correct the name, or give the whole path."
        if os.path.isfile(executable):
            said = f"'solvers.carried.launcher' begins with {shown(launcher[0])}, which is not executable"
            fix = f"Run `chmod +x {executable}`."
        elif "/" in executable:
            said = f"'solvers.carried.launcher' begins with {shown(launcher[0])}, but {executable} does not exist"
        yield location, f"{said}. {fix}"
    for number, word in enumerate(launcher):
        for brace in _BRACES.finditer(word):
            if brace["name"] is None and brace[0] not in ("{{", "}}"):
                said = f"'solvers.carried.launcher[{number}]' is {word!r}"
                yield (*location, number), f"{said}. Write '{{ranks}}', and '{2 * brace[0]}' for a brace."
            elif brace["name"] is not None and brace["name"] not in _OF_LAUNCHER:
                fix = suggestion(brace["name"], _OF_LAUNCHER) or f"The names are {', '.join(_OF_LAUNCHER)}."
                said = f"'solvers.carried.launcher[{number}]' is {word!r}, but there is no {brace['name']!r}"
                yield (*location, number), f"{said}. {fix}"


def check_library(solvers: Solvers, folder: Path) -> Iterator[Problem]:
    """Check whether the solver program is linked with the right library."""
    if solvers.program is None:
        return
    executable = find_program(solvers.program, folder)[0]
    at, said = ("solvers", "program"), f"'solvers.program' names {solvers.program[0]!r}, which is linked with"
    if solvers.carried is not None and is_linked_with(executable, "libmpidata.so"):
        fix = "Link it with libmpidata_carried (`mpidata config --carried`), or remove 'solvers.carried'."
        yield at, f"{said} libmpidata, though with 'solvers.carried' it is not a rank of the job. {fix}"
    elif solvers.carried is None and is_linked_with(executable, "libmpidata_carried.so"):
        fix = "Write 'carried: {ranks: 1}', or link it with libmpidata (`mpidata config --cflags --libs`)."
        yield at, f"{said} libmpidata_carried, which is for programs that are not ranks of the job. {fix}"


def check_program(location: Location, program: object, folder: Path) -> Iterator[Problem]:
    """Check that a program, relative to the job file's folder, and the script that it runs exist."""
    if (
        not isinstance(program, list)
        or not program
        or not all(isinstance(part, str) and part and part.isprintable() for part in program)
    ):
        return  # missing, or refused already
    name = ".".join(map(str, location))
    yield from _for_a_shell(location, program)
    executable, *rest = find_program(program, folder)
    here = folder / executable
    if os.path.isfile(here) and not os.access(here, os.X_OK):
        yield location, f"'{name}' names {program[0]!r}, which is not executable. Run `chmod +x {here}`."
    elif "/" in executable:
        if not os.path.exists(here):
            yield (
                location,
                f"'{name}' names {program[0]!r}, but {os.path.normpath(here)} does not exist. Build or correct it.",
            )
        elif not os.path.isfile(here):
            yield location, f"'{name}' names {program[0]!r}, which exists but cannot be executed. Name a program."
    elif shutil.which(executable) is None:
        yield (
            location,
            f"'{name}' names {shown(program[0])}, which is neither in {folder} nor on PATH. Build or correct it.",
        )
    script = rest[0] if rest and executable == sys.executable else "-"
    if script.startswith("-"):
        return
    if not os.path.exists(folder / script):
        yield location, f"'{name}' runs {shown(script)}, but {folder / script} does not exist. Correct the name."
    elif os.path.isdir(folder / script) and not os.path.isfile(folder / script / "__main__.py"):
        yield location, f"'{name}' runs {script!r}, which is a folder without a `__main__.py`. Name a script."


def _for_a_shell(location: Location, command: Sequence[str]) -> Iterator[Problem]:
    """Find the first word that only a shell would understand, such as `<`."""
    number = next((i for i, word in enumerate(command) if _OF_SHELL.fullmatch(word)), None)
    if number is not None:
        name = f"{'.'.join(map(str, location))}[{number}]"
        line = " ".join(word if _OF_SHELL.fullmatch(word) else shlex.quote(word) for word in command)
        said = f"'{name}' is {command[number]!r}, which is for a shell, but no shell reads this command"
        yield (*location, number), f"{said}. Write a script, or [sh, -c, {json.dumps(line, ensure_ascii=False)}]."


def check_object(location: Location, spec: object, folder: Path) -> Iterator[Problem]:
    """Check that `module:name` exists, without running the module."""
    if not isinstance(spec, str) or not is_object_name(spec):
        return  # missing, or refused already
    key = ".".join(map(str, location))
    module, _, name = spec.partition(":")
    search, found = [str(folder), *sys.path], None
    for part in module.split("."):
        # Part by part: importlib.util.find_spec("a.b") would run a.
        found = importlib.machinery.PathFinder.find_spec(part, search)
        if found is None:
            yield location, f"'{key}' is {spec!r}, but there is no module {module!r} in {folder}. Correct the name."
            return
        search = list(found.submodule_search_locations or ())
    names = _names(found.origin) if found is not None and found.origin else None
    if names is not None and name not in names:
        fix = suggestion(name, names) or "Correct the name."
        yield location, f"'{key}' is {spec!r}, but {found.origin if found else module} has no {name!r}. {fix}"


def _names(source: str) -> set[str] | None:
    """Return names that a Python file may define, or None if only running it would show them."""
    if not source.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(source).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None  # Python itself reports the error
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
