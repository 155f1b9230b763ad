"""The files that a program writes: which are complete, which belong to one step, and their order."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpidata.solver.renames import Renames

__all__ = ["Files", "WrongFilesError", "removed_before_read"]

_WILD = re.compile(r"(\*+|\?|\[[^\]]+\])")
# A minus or a point belongs to a number if no letter or digit precedes it: not in "out-5" and "out.5".
_NUMBER = re.compile(r"(?:(?<![A-Za-z0-9])-)?(?:\d+(?:\.\d+)?|(?<![A-Za-z0-9])\.\d+)(?:[eEdD][-+]?\d+)?")


class WrongFilesError(Exception):
    """The files of a program are not a sequence of steps; the text describes what the program did."""


def removed_before_read(name: str) -> str:
    """Return the message that a program has removed a file too early, to follow the program's name."""
    keep = "Let it keep all its files (in OpenFOAM purgeWrite 0): mpidata removes those that are read"
    return f"removed {name} before it was read. {keep}"


class Files:
    """The files that a program writes, by the numbers in their names, or by their times.

    Parameters
    ----------
    patterns : mapping of str to str
        Pattern for each field; for "" one whose files have all fields.
    folder : Path
        The folder in which the files are looked up.
    time : str, optional
        Regular expression whose first group in a file's name is its time.
    """

    def __init__(self, patterns: Mapping[str, str], folder: Path, time: str | None = None) -> None:
        self._patterns = patterns
        self._wild = {field: re.compile(_as_expression(pattern), re.DOTALL) for field, pattern in patterns.items()}
        self._folder = folder
        self._time = time
        self._taken: tuple[Sequence[float], str] | None = None  # place of the last one, and its name
        self._known: set[Path] = set()  # files that existed at the last call and are not read yet
        self._missing: set[Path] = set()  # of those, missing at the last call
        self._renames = Renames()
        self._renames.watch(folder)

    def complete(self, ended: bool) -> Iterator[dict[str, Path]]:
        """Yield the complete files of each step, by field.

        Files are complete if they were renamed to their names, the next ones exist, or the program has succeeded.

        Raises
        ------
        WrongFilesError
            A file comes before those that were yielded, another field has no file for its step at the end, its name has
            no time, or it was removed before it was read.
        """
        found = {field: self._sorted(field) for field in self._patterns}
        if self._misses_one(found, ended):
            return
        for folder in {path.parent for paths in found.values() for path in paths}:
            self._renames.watch(folder)
        count = min(map(len, found.values()))
        for i in range(count):
            files = {field: paths[i] for field, paths in found.items()}
            if not self._are_of_one_step(files):
                break
            if i == count - 1 and not ended and not all(map(self._renames.take, files.values())):
                return
            self._take(files)
            yield files
        else:
            i = count
        if ended:
            left = [path for paths in found.values() for path in paths[i:]]
            self._refuse_unpaired(left)

    def remove(self, files: Mapping[str, Path]) -> None:
        """Remove files or folders that were read."""
        for path in files.values():
            with contextlib.suppress(FileNotFoundError):  # the program may also clean up
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            self._known.discard(path)
            self._renames.forget(path)

    def time_of(self, path: Path) -> float | None:
        """Return the time in a file's name; None if names have no time. Raises WrongFilesError if this one lacks it."""
        if self._time is None:
            return None
        found = re.search(self._time, path.name)
        try:
            time = _value(found[1].rstrip(".")) if found else math.nan
        except ValueError:
            time = math.nan
        if not math.isfinite(time):
            said = f"wrote {path.name}, whose name has no time for 'solvers.output.time', {self._time!r}"
            raise WrongFilesError(said)
        return float(time)

    def _sorted(self, field: str) -> list[Path]:
        paths = self._folder.glob(self._patterns[field])
        return sorted(paths, key=lambda path: (self._place(field, path), str(path)))

    def _numbers(self, field: str, path: Path) -> list[float]:
        """Return the numbers at the wildcards of the pattern: 2 sorts before 10, and 5e-05 before 0.0001."""
        name = self._name(path)
        found = self._wild[field].fullmatch(name)
        wild = [found.span(number + 1) for number in range(len(found.groups()))] if found else [(0, len(name))]
        numbers = _NUMBER.finditer(name)
        return [_value(n[0]) for n in numbers if any(n.start() < end and n.end() > start for start, end in wild)]

    def _place(self, field: str, path: Path) -> Sequence[float]:
        time = self.time_of(path)
        return self._numbers(field, path) if time is None else (time,)

    def _misses_one(self, found: Mapping[str, Sequence[Path]], ended: bool) -> bool:
        """Whether an unread file has disappeared; if it is still missing at the next call, raise WrongFilesError.

        A renamed file has its number under another name. A folder is not listed atomically, so one listing may miss a
        file.
        """
        here = {path: field for field, paths in found.items() for path in paths}
        places = [self._place(field, path) for path, field in here.items()]
        lost = set()
        for path in (self._known | self._renames.seen()) - here.keys():
            field = next((f for f, wild in self._wild.items() if wild.fullmatch(self._name(path))), None)
            place = self._place(field, path) if field is not None else ()
            if place and place not in places and (self._taken is None or list(place) > list(self._taken[0])):
                lost.add(path)
        removed = lost if ended else lost & self._missing
        if removed:
            raise WrongFilesError(removed_before_read(self._name(min(removed))))
        self._known, self._missing = here.keys() | lost, lost
        return bool(lost)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._folder))

    def _are_of_one_step(self, files: Mapping[str, Path]) -> bool:
        places = [self._place(field, path) for field, path in files.items()]
        return all(place == places[0] for place in places)

    def _take(self, files: Mapping[str, Path]) -> None:
        field, path = next(iter(files.items()))
        place, name = self._place(field, path), self._name(path)
        if self._taken is not None:
            last, before = self._taken
            # Without a number a file that is rewritten is the next step.
            if list(place) <= list(last) if place else name < before:
                raise WrongFilesError(f"wrote {name} after {before}, but its number, time or name comes first")
        self._taken = place, name

    def _refuse_unpaired(self, left: Sequence[Path]) -> None:
        if left:
            others = ", ".join(repr(pattern) for pattern in self._patterns.values())
            raise WrongFilesError(f"wrote {left[0].name}, but not one file with its number for each of {others}")


def _value(number: str) -> float:
    """Convert a number, integers exactly; Fortran writes 5.0D-01."""
    return int(number) if number.lstrip("-").isdecimal() else float(number.replace("D", "e").replace("d", "e"))


def _as_expression(pattern: str) -> str:
    parts = enumerate(_WILD.split(pattern))
    return "".join("(.*)" if number % 2 else re.escape(part) for number, part in parts)
