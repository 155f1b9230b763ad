"""`solvers.case`: the folder of each simulation."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from mpidata.config.base import Model, Problem, Text, free_key, refuse
from mpidata.config.case.files import CaseFiles, escaped, printed

__all__ = ["Case", "wrong_mark"]

_MARKED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::([-+0]*[0-9]{0,3}(?:\.[0-9]{1,3})?[eEfFgGd]))?\s*")
_ALWAYS = ("try", "group", "ranks")
_MOST_FORMAT = 15  # launch/carrier/case.c has buffers for this, and for:
_MOST_FILLED = 64 << 20


def wrong_mark(
    mark: str, known: Collection[str], whole: Collection[str], texts: Collection[str], marks: Sequence[str]
) -> str:
    """Return what is wrong with the text between two marks; an empty text if nothing is."""
    word = _MARKED.fullmatch(mark)
    if word is None or len(word[2] or "") > _MOST_FORMAT:
        ways = " or ".join(way.join(marks) for way in ("name", "name:.6e", "name:4d"))
        return f"which cannot be filled. Write {ways}: a format of printf for a number, which ends with e, f, g or d."
    if word[1] not in known:
        return f"but there is no such parameter. The names are {', '.join(known)}."
    if word[2] and word[1] in texts:
        return f"but {word[1]} is not a number. Remove the format."
    if word[2] and word[2][-1] == "d" and word[1] not in whole:
        return f"but {word[1]} is not a whole number: give it 'integers' in 'parameters.space', or correct the format."
    return ""


def _marks(given: list[str]) -> list[str]:
    if len(given) != 2 or not all(re.fullmatch(r"[!-~]{1,15}", mark) for mark in given):
        refuse([((), f'{{key}} is {given!r}. Give two texts of 1 to 15 letters without blanks: ["<<", ">>"].')])
    return given


class Case(Model):
    """A folder that is copied for each simulation; the program runs in the copy."""

    folder: Text = free_key(description="The folder that is copied, or a link to it.", examples=["case"])
    fill: list[Text] = free_key(
        default=[],
        description="Its files, by names or patterns (`*`, `?`, `[ab]`, and `**` for folders), in which "
        "`{{alpha}}` is replaced by the value of a parameter. `{{alpha:.6e}}` uses a format of printf, which ends "
        "with e, f or g; for a whole number it may end with d, as in `{{n:04d}}`. `simulation`, `try`, `group`, "
        "`ranks` and, with `carried`, `hosts` are also replaced.",
        examples=['[input.dat, "system/*"]'],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    link: list[Text] = free_key(
        default=[],
        description="Its files and folders, by names or patterns, that are linked instead of copied, "
        "because the program only reads them.",
        examples=['[mesh, "*.msh"]'],
        json_schema_extra={"kind": "list of texts", "default": "none"},
    )
    marks: Annotated[list[Text], AfterValidator(_marks)] = free_key(
        default=["{{", "}}"],
        description="Delimiters of names in the files of `fill`, for programs whose own files contain double braces.",
        examples=['["<<", ">>"]'],
        json_schema_extra={"kind": "list of two texts"},
    )
    in_: Text | None = free_key(
        default=None,
        alias="in",
        description="The folder that holds the copies, in one subfolder for each run.",
        json_schema_extra={"default": "`cases` in the run folder"},
    )
    keep: Literal["none", "failed"] = free_key(
        default="none",
        description="Which copies are kept: `failed` moves those of simulations whose program ended badly to "
        "`failed` in the run folder.",
    )

    def files(self, folder: Path) -> CaseFiles:
        """Return which files of the case are filled and which are linked; `folder` is that of the job file."""
        return CaseFiles(folder / self.folder, self.fill, self.link)

    def misplaced(self, folder: Path, output: str) -> Iterator[Problem]:
        """Check whether the copies would be inside the folder that is copied; `output` is the key of the job file."""
        top, key = Path(os.path.realpath(folder / self.folder)), "'output'" if self.in_ is None else "'solvers.case.in'"
        place = Path(os.path.realpath(folder / (output if self.in_ is None else self.in_)))
        if place.is_relative_to(top):
            said = f"'solvers.case.folder' is {self.folder!r}, but its copies would be inside it, in {place}"
            yield (
                ("solvers", "case", "folder"),
                f"{said}. Name a folder with only the files of the case, or correct {key}.",
            )
        if self.in_ is not None:
            above = next(parent for parent in (place, *place.parents) if os.path.lexists(parent))
            if not os.access(above, os.W_OK):
                said = f"'solvers.case.in' is {self.in_!r}, but you may not write in {above}"
                yield ("solvers", "case", "in"), f"{said}. Name a folder of your own."

    def problems(
        self, folder: Path, known: Collection[str], whole: Collection[str], texts: Collection[str]
    ) -> Iterator[Problem]:
        """Find missing files, and unknown names in files; `try`, `group` and `ranks` are always known.

        Parameters
        ----------
        folder : Path
            The folder of the job file.
        known : collection of str
            Names that may occur in the files.
        whole, texts : collection of str
            The names of whole numbers; the names of texts.
        """
        top = folder / self.folder
        if not os.path.isdir(top):
            yield ("solvers", "case", "folder"), f"'solvers.case.folder' is {self.folder!r}, but {top} is not a folder."
            return
        files = self.files(folder)
        found = list(files.problems())
        yield from found
        if found:  # perhaps because a file cannot be read
            return
        opens, closes = map(re.escape, self.marks)
        pattern = re.compile(rf"{opens}((?:(?!{opens}|{closes})[^\n])*){closes}")
        for path in (files.top / name for name in files.filled):
            said = f"'solvers.case.fill' names {printed(path)}, which"
            try:
                large = path.stat().st_size > _MOST_FILLED
                text = "" if large else path.read_text("utf-8", "replace")
            except OSError as error:  # for example the target of a link
                yield ("solvers", "case", "fill"), f"{said} cannot be read: {error.strerror}. Make it readable."
                continue
            if large:
                most = f"{_MOST_FILLED >> 20} MiB"
                yield ("solvers", "case", "fill"), f"{said} has more than {most}. Fill a smaller file."
            for mark in pattern.finditer(text):
                wrong = wrong_mark(mark[1], [*known, *_ALWAYS], [*whole, *_ALWAYS], texts, self.marks)
                if wrong:
                    yield ("solvers", "case", "fill"), f"{printed(path)} has '{mark[0]}', {wrong}"
            for mark in re.finditer(rf"{opens}[ \t]*([A-Za-z_]\w*)", pattern.sub("", text)):
                if mark[1] in (*known, *_ALWAYS):  # any other word may be the program's: `<< END`
                    closed = f"but no '{self.marks[1]}' after it on the same line"
                    other = "Close it, or choose other marks with 'solvers.case.marks'."
                    yield ("solvers", "case", "fill"), f"{printed(path)} has '{mark[0]}', {closed}. {other}"

    def text(self, folder: Path, run: Path) -> str:
        """Return the file with the case for carriers; `folder` is that of the job file, `run` the run folder."""
        files = self.files(folder)
        lines = [f"folder {escaped(str(files.top))}", f"keep {self.keep}", f"marks {' '.join(self.marks)}"]
        if self.in_ is not None:  # two runs may use the same folder
            own = f"mpidata-{hashlib.sha256(str(run.absolute()).encode()).hexdigest()[:16]}"
            lines.append(f"in {escaped(str((folder / self.in_).absolute() / own))}")
        for key, names in (("fill", files.filled), ("link", files.linked)):
            lines += [f"{key} {escaped(name)}" for name in names]
        return "\n".join(lines) + "\n"
