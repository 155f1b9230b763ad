"""Templates of batch scripts: where they are, and how their placeholders are filled in."""

from __future__ import annotations

import importlib.resources
import io
import re
from collections.abc import Mapping
from pathlib import Path

from mpidata.config.base import open_regular
from mpidata.config.sentences import suggestion
from mpidata.errors import LaunchError

__all__ = ["read_template", "render", "template_names"]

_PLACEHOLDER = re.compile(r"\{\{([^{}\n]*)\}\}")
_SUFFIX = ".sbatch"


def template_names() -> list[str]:
    """Names of the templates that come with mpidata."""
    folder = importlib.resources.files("mpidata.slurm_templates")
    return sorted(file.name[: -len(_SUFFIX)] for file in folder.iterdir() if file.name.endswith(_SUFFIX))


def read_template(name: str, folder: Path) -> tuple[str, str]:
    """Read a template: one that comes with mpidata, or a file.

    Parameters
    ----------
    name : str
        Its name, or the path of a file.
    folder : Path
        The folder that the path is relative to.

    Returns
    -------
    text : str
    where : str
        Name of the template for errors.

    Raises
    ------
    LaunchError
        There is no such template, or it cannot be read.
    """
    if name in template_names():
        file = importlib.resources.files("mpidata.slurm_templates") / f"{name}{_SUFFIX}"
        return file.read_text(encoding="utf-8"), file.name
    path = folder / name
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8") as given:
            return given.read(), str(path)
    except FileNotFoundError:
        near = suggestion(name, template_names()) or f"The templates are {', '.join(template_names())}"
        raise LaunchError(
            f"There is no template {name!r}, and no file {path}. Key 'slurm.template'. {near.rstrip('.')}."
        ) from None
    except OSError as error:
        said = f"Cannot read the template {path}: {error.strerror}"
        raise LaunchError(f"{said}. Key 'slurm.template'. Name a file that you can read.") from None
    except UnicodeDecodeError as error:
        said = f"The template {path} is not UTF-8 at byte {error.start}"
        raise LaunchError(f"{said}. Key 'slurm.template'. Save it as UTF-8.") from None


def render(text: str, values: Mapping[str, str], missing: Mapping[str, str], where: str) -> str:
    """Fill in the placeholders of a template, each `{{name}}`.

    Parameters
    ----------
    text : str
        The template.
    values : mapping of str to str
        Value of each placeholder. An empty value removes a line that contains nothing else.
    missing : mapping of str to str
        For each placeholder without a value, how to set one.
    where : str
        Name of the template, for errors.

    Raises
    ------
    LaunchError
        One sentence for each placeholder that is unknown or has no value.
    """
    problems: list[str] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        names = [match.strip() for match in _PLACEHOLDER.findall(line)]
        problems += [f"{where}, line {number}: {_problem(n, values, missing)}" for n in names if n not in values]
        filled = _PLACEHOLDER.sub(lambda match: values.get(match[1].strip(), ""), line)
        if filled or not names:
            lines.append(filled)
    if problems:
        known = ", ".join(sorted(values))
        raise LaunchError("\n".join([*dict.fromkeys(problems), f"The placeholders that have a value are {known}."]))
    return "\n".join(lines)


def _problem(name: str, values: Mapping[str, str], missing: Mapping[str, str]) -> str:
    if name in missing:
        return f"{{{{{name}}}}} has no value. {missing[name]}"
    near = suggestion(name, [*values, *missing])
    return f"unknown placeholder {{{{{name}}}}}. {near or 'Give it a value with the key slurm.values, or remove it.'}"
