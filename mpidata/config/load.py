"""Read a job file, check everything in it, and report all errors at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import TypeAdapter, ValidationError

from mpidata.config import yaml_text
from mpidata.config.base import Location, Origin, Problem, open_regular, origin, stated
from mpidata.config.checks import check
from mpidata.config.describe import key_of
from mpidata.config.job import Job
from mpidata.config.notes import (
    deprecated_samplers,
    drop_without_effect,
    fit_watermark,
    never_learns,
    new_name,
    rename,
    unknown_to_program,
)
from mpidata.config.sentences import dotted, problems_of, shown
from mpidata.errors import JobFileError

__all__ = ["load_job", "resolved_yaml"]

_MOST_BYTES = 16 << 20


def load_job(path: str | Path, overrides: Sequence[str] = ()) -> Job:
    """Read and check a job file, and the files that it names.

    Parameters
    ----------
    path : str or Path
        The job file.
    overrides : sequence of str
        Settings that replace those of the file, each `a.b=value`, with the value in YAML.

    Returns
    -------
    Job
        All keys have their values, including defaults; `parameters.space` and `parameters.count` are filled in from
        the table of `sampler: file`. Its `notes` are to be shown to the user.

    Raises
    ------
    JobFileError
        One sentence for each error, with key, value, fix and line.
    """
    path = Path(os.path.abspath(path))
    source = _Source(path)
    source.read()
    source.problems += rename(source.data, source.origins, source.notes)
    for override in overrides:
        source.override(override)
    source.fill_in()
    sections, problems = _validate(source.data)
    source.problems += problems
    source.notes += drop_without_effect(sections)
    fit_watermark(sections)
    found, filled = check(sections, source.data)
    source.problems += found
    source.refuse()
    source.notes += unknown_to_program(sections, Path(source.data["folder"])) + never_learns(sections)
    source.notes += deprecated_samplers(sections)
    if filled:
        sections["parameters"] = sections["parameters"].model_copy(update=filled)
    job = Job.model_validate(sections)
    job._path = path
    job._notes = source.sentences(source.notes)
    return job


def keys_of(path: str | Path) -> frozenset[str]:
    """Return the keys at the top of a job file; raises JobFileError if it cannot be read."""
    source = _Source(Path(os.path.abspath(path)))
    source.read()
    return frozenset(source.data)


def resolved_yaml(job: Job) -> str:
    """Return the job with its defaults as YAML; loaded from any folder, this gives an equal job."""
    return yaml_text.dump(job.resolved())


def no_utf_8(path: str) -> str | None:
    """Return a path that is not UTF-8 with its invalid bytes in hexadecimal; None if it is UTF-8."""
    try:
        path.encode()
        return None
    except UnicodeEncodeError:
        return os.fsencode(path).decode(errors="backslashreplace")


class _Source:
    """The data of a job file on its way to the models, and where each key came from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data: dict[str, Any] = {}
        self.origins: dict[Location, Origin] = {}
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def read(self) -> None:
        """Read the file; raises JobFileError if nothing else can be checked."""
        try:
            with open_regular(self.path, _MOST_BYTES) as file:
                document = yaml_text.read(file.read().decode("utf-8-sig"))
        except OSError as error:
            raise self._fatal(f"cannot read {self.path}: {error.strerror}. Give the path of a job file.") from None
        except UnicodeDecodeError as error:
            raise self._fatal(f"not UTF-8 at byte {error.start}. Save the file as UTF-8.") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
            raise self._fatal(f"not valid YAML: {error.problem or error.context}. Correct it{where}.") from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise self._fatal(f"not valid YAML: {' '.join(str(error).split())}. Correct it.") from None
        if not isinstance(document.data, dict):
            found = "nothing" if document.data is None else f"{shown(document.data)}, not keys"
            raise self._fatal(f"it holds {found}. Begin with 'trainers:', 'solvers:', ...")
        self.data = document.data
        self.origins = dict(document.lines)
        self.problems += document.problems

    def override(self, text: str) -> None:
        """Replace one key by a setting `a.b=value`."""
        name, equals, value = text.partition("=")
        keys: Location = tuple(name.strip().split("."))
        if not equals or not all(keys):
            self.problems.append(((), f"'--set {text}' is not a setting. Write key=value: buffer.capacity=4000."))
            return
        keys = new_name(keys, self.notes)
        self.origins = {at: line for at, line in self.origins.items() if at[: len(keys)] != keys}
        self.origins[keys] = f"--set {text}"
        inner: Any = self.data
        for depth, key in enumerate(keys[:-1]):
            if inner.get(key) is None:
                inner[key] = {}
            inner = inner[key]
            if not isinstance(inner, dict):
                above = dotted(keys[: depth + 1])
                self.problems.append((keys, f"'{above}' is {shown(inner)}, so '{name}' cannot be set. Set '{above}'."))
                return
        try:
            inner[keys[-1]] = yaml_text.parse_value(value, keys)
        except (yaml.YAMLError, ValueError, RecursionError):
            self.problems.append((keys, f"'{value}' is not valid YAML, so '{name}' cannot be set. Correct the value."))

    def fill_in(self) -> None:
        """Fill in the defaults that depend on where the file is."""
        if "name" not in self.data:
            self.data["name"] = re.sub(r"[^A-Za-z0-9._-]", "-", self.path.stem).lstrip(".-") or "job"
        folder = self.data.get("folder", ".")
        if isinstance(folder, str):
            self.data["folder"] = os.path.abspath(self.path.parent / folder)
            if (name := no_utf_8(self.data["folder"])) is not None:
                raise self._fatal(
                    f"the name of its folder, {name}, is not UTF-8, so the files of a run cannot hold it. Rename it."
                )

    def refuse(self) -> None:
        """Raise JobFileError if there is a problem."""
        if self.problems:
            raise JobFileError(self.sentences(self.problems))

    def sentences(self, problems: Sequence[Problem]) -> tuple[str, ...]:
        """Return sentences with the file and line of each problem, in the order of the file."""
        order = sorted(range(len(problems)), key=lambda i: (self._line(problems[i][0]), i))
        return tuple(dict.fromkeys(self._sentence(*problems[i]) for i in order))

    def _line(self, location: Location) -> int:
        where = origin(self.origins, location)
        return where if isinstance(where, int) else 2**31

    def _sentence(self, location: Location, sentence: str) -> str:
        return f"{self.path.name}: {sentence}{stated(self.origins, location)}"

    def _fatal(self, sentence: str) -> JobFileError:
        return JobFileError(f"{self.path.name}: {sentence}")


def _validate(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Validate each section separately, so that one with errors does not hide errors between the others."""
    sections: dict[str, Any] = {}
    problems: list[Problem] = []
    names = {key_of(name, info): name for name, info in Job.model_fields.items()}
    for key, name in names.items():
        if key in data:
            info = Job.model_fields[name]
            adapter: TypeAdapter[Any] = TypeAdapter(Annotated[info.annotation, info])  # type: ignore[arg-type]
            try:
                sections[name] = adapter.validate_python(data[key])
            except ValidationError as error:
                for details in error.errors():
                    details["loc"] = (key, *details["loc"])
                    problems += problems_of(details)
    keys = {key: value for key, value in data.items() if key not in names}
    keys |= {key: sections[name] for key, name in names.items() if name in sections}
    try:
        Job.model_validate(keys)
    except ValidationError as error:
        for details in error.errors():
            if details["type"] != "missing" or details["loc"][0] not in data:
                problems += problems_of(details)
    return sections, problems
