"""`solvers.case` and `solvers.output`: the folder of each simulation, and what is read of what is written there."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Tag

from mpidata.config.base import Key, Model, Natural, Problem, Text, free_key, refuse
from mpidata.config.data import FieldName

__all__ = ["Case", "Output", "wrong_mark"]

_MARKED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::([-+0]*[0-9]*(?:\.[0-9]+)?[eEfFgGd]))?\s*")
_ALWAYS = ("try", "group", "ranks")
_MOST_FORMAT = 15  # launch/carrier/case.c has room for it, and for this:
_MOST_FILLED = 64 << 20
_READ = (".npy", ".npz", ".h5", ".hdf5")


def _found(top: Path, pattern: str) -> list[Path]:
    """List the files of a pattern; none where it is no pattern."""
    try:
        return list(top.glob(pattern))
    except (ValueError, NotImplementedError):
        return []


def wrong_mark(
    mark: str, known: Collection[str], whole: Collection[str], texts: Collection[str], marks: Sequence[str]
) -> str:
    """Say what is wrong with what stands between two marks; an empty text if nothing is."""
    word = _MARKED.fullmatch(mark)
    if word is None or len(word[2] or "") > _MOST_FORMAT:
        ways = " or ".join(way.join(marks) for way in ("name", "name:.6e", "name:4d"))
        return f"which cannot be filled. Write {ways}: a format of printf for a number, which ends with e, f, g or d."
    if word[1] not in known:
        return f"but there is no parameter. The names are {', '.join(known)}."
    if word[2] and word[1] in texts:
        return f"but {word[1]} is no number. Remove the format."
    if word[2] and word[2][-1] == "d" and word[1] not in whole:
        return f"but {word[1]} is no whole number: give it with 'integers' in 'parameters.space'. Correct the format."
    return ""


def _marks(given: list[str]) -> list[str]:
    if len(given) != 2 or not all(re.fullmatch(r"[!-~]{1,15}", mark) for mark in given):
        refuse([((), f'{{key}} is {given!r}. Give two texts of 1 to 15 letters without blanks: ["<<", ">>"].')])
    return given


class Case(Model):
    """A folder that each simulation gets as a copy of its own, in which the program runs."""

    folder: Text = free_key(description="The folder that is copied.", examples=["case"])
    fill: list[Text] = free_key(
        default=[],
        description="Files of it, by patterns, in which `{{alpha}}` stands for the value of a parameter, and "
        "`{{alpha:.6e}}` for it in a format of printf, which ends with e, f or g, or of a whole number, `{{n:04d}}`, "
        "with d; also `simulation`, `try`, `group`, `ranks` and, with `carried`, `hosts`.",
        examples=['[input.dat, "system/*"]'],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    link: list[Text] = free_key(
        default=[],
        description="Files and folders of it that are linked, not copied: those that the program only reads.",
        examples=["[mesh]"],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    marks: Annotated[list[Text], AfterValidator(_marks)] = free_key(
        default=["{{", "}}"],
        description="What stands before and after a name in the files of `fill`, where the program's own files have "
        "double braces.",
        examples=['["<<", ">>"]'],
        json_schema_extra={"kind": "list of two texts"},
    )
    in_: Text | None = free_key(
        default=None,
        alias="in",
        description="The folder that holds the copies, in a folder of their own for each run.",
        json_schema_extra={"default": "`cases` in the run folder"},
    )
    keep: Literal["none", "failed"] = free_key(
        default="none",
        description="What is not removed: `failed`, the copies of simulations whose program ended badly, which go to "
        "`failed` in the run folder.",
    )

    def filled(self, folder: Path) -> list[str]:
        """Paths of the files to fill, within the case folder; `folder` is that of the job file."""
        top = folder / self.folder
        found = {path for pattern in self.fill for path in _found(top, pattern) if path.is_file()}
        return sorted(str(path.relative_to(top)) for path in found)

    def misplaced(self, folder: Path, output: str) -> Iterator[Problem]:
        """Look whether the copies would go into the folder that is copied; `output` is the key of the job file."""
        top, key = Path(os.path.realpath(folder / self.folder)), "'output'" if self.in_ is None else "'solvers.case.in'"
        place = Path(os.path.realpath(folder / (output if self.in_ is None else self.in_)))
        if place.is_relative_to(top):
            said = f"'solvers.case.folder' is {self.folder!r}, and the copies of it would go into itself, to {place}"
            yield (
                ("solvers", "case", "folder"),
                f"{said}. Name a folder with the files of the case alone, or correct {key}.",
            )
        if self.in_ is not None:
            above = next(parent for parent in (place, *place.parents) if os.path.lexists(parent))
            if not os.access(above, os.W_OK):
                said = f"'solvers.case.in' is {self.in_!r}, but you may not write in {above}"
                yield ("solvers", "case", "in"), f"{said}. Name a folder of your own."

    def problems(
        self, folder: Path, known: Collection[str], whole: Collection[str], texts: Collection[str]
    ) -> Iterator[Problem]:
        """Look for the files, and for names in them that are none; `try`, `group` and `ranks` are always known.

        Parameters
        ----------
        folder : Path
            That of the job file.
        known : collection of str
            Names that can stand in the files.
        whole, texts : collection of str
            Those of whole numbers; those of no numbers.
        """
        top = folder / self.folder
        if not top.is_dir():
            yield ("solvers", "case", "folder"), f"'solvers.case.folder' is {self.folder!r}, but {top} is no folder."
            return
        for key, names in (("fill", self.fill), ("link", self.link)):
            for i, name in enumerate(names):
                if name.startswith("/") or ".." in Path(name).parts or not _found(top, name):
                    said = f"'solvers.case.{key}[{i}]' is {name!r}, but {top} has no such file"
                    yield ("solvers", "case", key, i), f"{said}. Correct the name."
        for name in self.filled(folder):
            said = f"'solvers.case.fill' names {top / name}"
            if any(Path(name).is_relative_to(link.rstrip("/")) for link in self.link):
                yield (
                    ("solvers", "case", "fill"),
                    f"{said}, which 'solvers.case.link' links. Remove it from one of them.",
                )
            elif (top / name).stat().st_size > _MOST_FILLED:
                most = f"{_MOST_FILLED >> 20} MiB"
                yield ("solvers", "case", "fill"), f"{said}, which has more than {most}. Fill a smaller file."
        opens, closes = map(re.escape, self.marks)
        pattern = re.compile(rf"{opens}((?:(?!{opens}|{closes})[^\n])*){closes}")
        for name in self.filled(folder):
            for mark in pattern.finditer((top / name).read_text("utf-8", "replace")):
                wrong = wrong_mark(mark[1], [*known, *_ALWAYS], [*whole, *_ALWAYS], texts, self.marks)
                if wrong:
                    yield ("solvers", "case", "fill"), f"{top / name} has '{mark[0]}', {wrong}"

    def text(self, folder: Path, run: Path) -> str:
        """Write what carriers need to know of it; `folder` is that of the job file, `run` the run folder."""
        lines = [f"folder {(folder / self.folder).absolute()}", f"keep {self.keep}", f"marks {' '.join(self.marks)}"]
        if self.in_ is not None:  # two runs may have the same
            own = f"mpidata-{hashlib.sha256(str(run.absolute()).encode()).hexdigest()[:16]}"
            lines.append(f"in {(folder / self.in_).absolute() / own}")
        lines += [f"fill {name}" for name in self.filled(folder)] + [f"link {name.rstrip('/')}" for name in self.link]
        return "\n".join(lines) + "\n"


def _object_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        refuse([((), f'{{key}} is {value!r}. Write it as "module:name", for instance "read:fields".')])
    return value


def _expression(text: str) -> str:
    try:
        if re.compile(text).groups < 1:
            refuse([((), f"{{key}} is {text!r}, which has no group. Put the number into parentheses: 't([0-9.]+)'.")])
    except re.error as error:
        refuse([((), f"{{key}} is {text!r}, which is no regular expression: {error}. Correct it.")])
    return text


_Patterns = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[dict[FieldName, Text], Tag("<fields>"), Key(min_length=1)],
    Discriminator(lambda value: "<fields>" if isinstance(value, dict) else "<text>"),
]


class Output(Model):
    """What the program of a simulation writes, and how it is read while the program runs; what was read is removed."""

    files: _Patterns = free_key(
        description="Pattern of the files, one a step, in the order of the numbers in their names, or of `time`; or a "
        "pattern for each field: files with the same numbers are of one step. A file is read when it was renamed to "
        "its name, when the next one is there, or when the program has ended.",
        examples=['"out/step_*.npy"'],
        json_schema_extra={"kind": "text, or mapping from field to text"},
    )
    reader: Annotated[Text, AfterValidator(_object_name)] | None = free_key(
        default=None,
        description="A function, `module:function`, called with the path of a file and the simulation. It yields "
        "`(time, {field: array})`, as often as the file has steps. Without this key npy, npz and HDF5 files are read.",
        examples=['"read:fields"'],
    )
    time: Annotated[Text, AfterValidator(_expression)] | None = free_key(
        default=None,
        description="A regular expression, whose first group in a file's name is the time of its step. Each name must "
        "match.",
        examples=['"t([0-9.]+)[.]npy"'],
        json_schema_extra={"default": "the number of the step"},
    )
    success: list[Annotated[Natural, Key(le=255)]] = free_key(
        default=[0],
        min_length=1,
        description="Exit statuses of a program that has ended well; another one is a failed try.",
        json_schema_extra={"kind": "list of whole numbers"},
    )

    def problems(self, top: Path, fields: Mapping[str, object]) -> Iterator[Problem]:
        """Look for files of the case, whose folder is `top`, that would be taken for output, and for fields."""
        patterns = self.files if isinstance(self.files, dict) else {"": self.files}
        for field, pattern in patterns.items():
            at = ("solvers", "output", "files", field) if field else ("solvers", "output", "files")
            said = f"'{'.'.join(at)}' is {pattern!r}"
            suffix = Path(pattern).suffix
            if pattern.startswith("/") or ".." in Path(pattern).parts:
                yield at, f"{said}, which is not within the folder of the simulation. Write it as seen from there."
            elif "**" in pattern.replace("**/", ""):
                yield at, f"{said}, but '**' stands for folders alone: '**/step_*.npy'. Correct it."
            elif self.reader is None and suffix[1:].isalnum() and suffix not in _READ:
                fix = "Name a function that reads the files: 'reader: read:fields'."
                yield at, f"{said}, but without a reader {', '.join(_READ)} are read. {fix}"
            elif (own := next(iter(_found(top, pattern)), None)) is not None:
                fix = "Correct the pattern, or rename the file."
                yield at, f"{said}, and {own} would be taken for what the program has written. {fix}"
        if self.reader is None and isinstance(self.files, dict) and self.files.keys() != fields.keys():
            said = f"'solvers.output.files' has patterns for {', '.join(self.files)}"
            yield ("solvers", "output", "files"), f"{said}, and the fields are {', '.join(fields)}. Give one for each."
