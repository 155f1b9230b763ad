"""The files of a case: which of them `fill` and `link` match, and which cannot be copied."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from mpidata.config.base import Problem

__all__ = ["CaseFiles", "escaped", "printed"]

_PLAIN = "".join(map(chr, range(32, 127))).replace("%", "")


def escaped(name: str) -> str:
    """Return a path as in the file for carriers, special characters as %0A; launch/parents/fill.c reads it."""
    return quote(os.fsencode(name), safe=_PLAIN)


def printed(path: str | Path) -> str:
    """Return a path for a sentence; its bytes may not be UTF-8."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return text if text.isprintable() else repr(text)[1:-1]


class CaseFiles:
    """The contents of the folder of a case, at one time.

    Parameters
    ----------
    top : Path
        The folder, or a link to it.
    fill, link : sequence of str
        Names or patterns, relative to the folder. An existing name is taken literally, even if it could be read as a
        pattern.

    Attributes
    ----------
    top : Path
        The folder, without links.
    filled, linked : list of str
        The files that are filled, and the files and folders that are linked, sorted. The contents of a linked folder
        are linked with it, and not listed.

    Notes
    -----
    Links in the folder are not followed: their targets do not belong to the case.
    """

    def __init__(self, top: Path, fill: Sequence[str], link: Sequence[str]) -> None:
        self.top = Path(os.path.realpath(top))
        self._unread: list[str] = []
        self._all = {entry.path[len(str(self.top)) :].lstrip("/"): entry for entry in self._walk(str(self.top))}
        self._meant = {"fill": [self._matches(name) for name in fill], "link": [self._matches(name) for name in link]}
        self._given = {"fill": fill, "link": link}
        named = {name for names in self._meant["link"] for name in names}
        self.linked = sorted(name for name in named if _above(name, named) is None)
        self.filled = sorted({name for names in self._meant["fill"] for name in names if self._is_file(name)})

    def problems(self) -> Iterator[Problem]:
        """Find names that match nothing or no file that can be filled, and files that cannot be copied."""
        if "" in self._unread:
            said = f"'solvers.case.folder' is {printed(self.top)}, which you may not read"
            yield ("solvers", "case", "folder"), f"{said}. Run `chmod u+rx` on it."
            return
        for key, given in self._given.items():
            for i, (name, meant) in enumerate(zip(given, self._meant[key], strict=True)):
                wrong = self._wrong(key, name, meant)
                if wrong:
                    yield ("solvers", "case", key, i), f"'solvers.case.{key}[{i}]' is {printed(name)!r}, but {wrong}"
        linked = set(self.linked)
        for name in self.filled:
            if name in linked or _above(name, linked) is not None:
                said = f"'solvers.case.fill' names {printed(self.top / name)}, which 'solvers.case.link' links"
                yield ("solvers", "case", "fill"), f"{said}. Remove it from one of them."
        for name in [*self._unread, *self._all]:
            wrong = "" if name in linked or _above(name, linked) is not None else self._cannot_be_copied(name)
            if wrong:
                said = f"'solvers.case.folder' holds {printed(self.top / name)}, {wrong}"
                yield ("solvers", "case", "folder"), f"{said}, or name it in 'solvers.case.link'."
                return  # there may be thousands

    def _walk(self, folder: str) -> Iterator[os.DirEntry[str]]:
        folders = [folder]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        yield entry
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except OSError as error:
                self._unread.append(str(error.filename)[len(folder) :].lstrip("/"))

    def _matches(self, given: str) -> list[str]:
        parts = PurePosixPath(given).parts
        name = "/".join(parts)
        if name in self._all:
            return [name]
        if not parts or not _is_pattern(parts):
            return []
        return [name for name in self._all if _fits(parts, name.split("/"))]

    def _wrong(self, key: str, given: str, meant: Sequence[str]) -> str:
        """Return what is wrong with a name or pattern; an empty text if nothing is."""
        parts = PurePosixPath(given).parts
        if given.startswith("/") or ".." in parts or not parts:
            return f"it must name files in {printed(self.top)}, relative to that. Correct the name."
        if not meant:
            if any("**" in part and part != "**" for part in parts):
                return "'**' only matches whole folders: '**/*.dat'. Correct the pattern."
            behind = next((above for above in _parents(given) if self._is_link(above)), None)
            if behind is not None:
                said = f"{printed(self.top / behind)} is a link, whose target is not copied"
                return f"{said}. Name a file of the case itself."
            return f"{printed(self.top)} has no such file. Correct the name."
        if key == "link" or any(map(self._is_file, meant)):
            return ""
        one = next((name for name in meant if os.path.isdir(self.top / name)), None)
        if one is None:
            return f"{printed(self.top / meant[0])} is not a regular file, or is a link to nothing. Correct the name."
        if self._is_link(one):
            return f"{printed(self.top / one)} is a link to a folder. Name a file of the case itself."
        way = f"'{printed(one)}/*' for its files, '{printed(one)}/**' for those in its folders as well"
        return f"{printed(self.top / one)} is a folder. Write {way}."

    def _is_file(self, name: str) -> bool:
        return os.path.isfile(self.top / name)  # also if it is a link to a file

    def _is_link(self, name: str) -> bool:
        return name in self._all and self._all[name].is_symlink()

    def _cannot_be_copied(self, name: str) -> str:
        entry = self._all.get(name)
        if entry is None or name in self._unread:
            return "which you may not read. Run `chmod u+rx` on it"
        if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
            return ""
        if entry.is_file(follow_symlinks=False):
            readable = os.access(entry.path, os.R_OK, effective_ids=True)
            return "" if readable else "which you may not read. Run `chmod u+r` on it"
        if stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode):
            return ""
        return "which is a socket or a device. Remove it"


def _parents(name: str) -> list[str]:
    """Return the folders above a name, the outermost first."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _above(name: str, names: set[str]) -> str | None:
    """Find the outermost of `names` that is a folder above this one."""
    return next((above for above in _parents(name) if above in names), None)


def _is_pattern(parts: Sequence[str]) -> bool:
    return not parts[0].startswith("/") and not any(".." == part or ("**" in part and part != "**") for part in parts)


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a path matches a pattern, both in parts: `**` is any number of folders, and at the end all below."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        if len(pattern) == 1:
            return bool(parts)
        return any(_fits(pattern[1:], parts[i:]) for i in range(len(parts)))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])
