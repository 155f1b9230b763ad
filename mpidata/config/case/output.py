"""`solvers.output`: which files of a simulation's program are read, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Tag

from mpidata.config.base import Key, Model, Natural, Problem, Text, free_key, refuse
from mpidata.config.data import FieldName

__all__ = ["Output"]

_READ = (".npy", ".npz", ".h5", ".hdf5")


def _found(top: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern; none if the pattern is invalid."""
    try:
        return list(top.glob(pattern))
    except (ValueError, NotImplementedError):
        return []


def _object_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        refuse([((), f'{{key}} is {value!r}. Write it as "module:name", for instance "read:fields".')])
    return value


def _expression(text: str) -> str:
    try:
        if re.compile(text).groups < 1:
            refuse([((), f"{{key}} is {text!r}, which has no group. Put the number into parentheses: 't([0-9.]+)'.")])
    except re.error as error:
        refuse([((), f"{{key}} is {text!r}, which is not a regular expression: {error}. Correct it.")])
    return text


_Patterns = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[dict[FieldName, Text], Tag("<fields>"), Key(min_length=1)],
    Discriminator(lambda value: "<fields>" if isinstance(value, dict) else "<text>"),
]


class Output(Model):
    """Files that the program of a simulation writes. mpidata reads them while it runs, and then removes them."""

    files: _Patterns = free_key(
        description="Pattern of the files, one for each step, in the order of the numbers in their names, or of "
        "`time`. A mapping gives a pattern for each field; files with the same numbers belong to one step. A file is "
        "read when it has been renamed to its name, when the next one exists, or when the program has ended.",
        examples=['"out/step_*.npy"'],
        json_schema_extra={"kind": "text, or mapping from field to text"},
    )
    reader: Annotated[Text, AfterValidator(_object_name)] | None = free_key(
        default=None,
        description="A function, `module:function`, called with the path of a file and the simulation. It yields "
        "`(time, {field: array})` for each step in the file. Without this key npy, npz and HDF5 files are read.",
        examples=['"read:fields"'],
    )
    time: Annotated[Text, AfterValidator(_expression)] | None = free_key(
        default=None,
        description="A regular expression whose first group in a file's name is the time of its step. Each name must "
        "match.",
        examples=['"t([0-9.]+)[.]npy"'],
        json_schema_extra={"default": "the number of the step"},
    )
    success: list[Annotated[Natural, Key(le=255)]] = free_key(
        default=[0],
        min_length=1,
        description="Exit statuses of success. With any other status the try has failed.",
        json_schema_extra={"kind": "list of whole numbers"},
    )

    def problems(self, top: Path, fields: Mapping[str, object]) -> Iterator[Problem]:
        """Check patterns: find fields without one, and files of the case in `top` that would be taken for output."""
        patterns = self.files if isinstance(self.files, dict) else {"": self.files}
        for field, pattern in patterns.items():
            at = ("solvers", "output", "files", field) if field else ("solvers", "output", "files")
            said = f"'{'.'.join(at)}' is {pattern!r}"
            suffix = Path(pattern).suffix
            if pattern.startswith("/") or ".." in Path(pattern).parts:
                yield at, f"{said}, which is outside the folder of the simulation. Write it relative to that folder."
            elif "**" in pattern.replace("**/", ""):
                yield at, f"{said}, but '**' only matches whole folders: '**/step_*.npy'. Correct it."
            elif self.reader is None and suffix[1:].isalnum() and suffix not in _READ:
                fix = "Name a function that reads the files: 'reader: read:fields'."
                yield at, f"{said}, but without a reader only {', '.join(_READ)} are read. {fix}"
            elif (own := next(iter(_found(top, pattern)), None)) is not None:
                fix = "Correct the pattern, or rename the file."
                yield at, f"{said}, which also matches {own}, a file that the program has not written. {fix}"
        if self.reader is None and isinstance(self.files, dict) and self.files.keys() != fields.keys():
            said = f"'solvers.output.files' has patterns for {', '.join(self.files)}"
            yield ("solvers", "output", "files"), f"{said}, but the fields are {', '.join(fields)}. Give one for each."
