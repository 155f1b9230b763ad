"""Code of all models of the job file: strict scalars, the base class, refusals, and opening the files it names."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, Strict
from pydantic import Field as Key
from pydantic_core import CoreSchema, PydanticCustomError, PydanticUndefined, core_schema

__all__ = [
    "FIXED",
    "MOST",
    "Boolean",
    "Count",
    "Key",
    "Location",
    "Model",
    "Origin",
    "Natural",
    "Number",
    "Positive",
    "Problem",
    "Text",
    "Words",
    "changed_fixed_keys",
    "fixed_key",
    "free_key",
    "open_regular",
    "origin",
    "refuse",
    "stated",
]

Location = tuple[str | int, ...]
"""Keys and indices that lead to a value of the job file."""

Origin = int | str
"""Where a value of the job file was set: the line of the file, or an option of the command."""

Problem = tuple[Location, str]
"""A sentence about the value at a location."""

FIXED = "fixed"
"""The entry of a key's `json_schema_extra` that forbids a resume to change the key."""

MOST = 2**31 - 1
"""Maximum of a whole number without another limit."""

# Strict: `ranks: true` or `ranks: 2.0` are mistakes, not ranks: 1 or 2.
Natural = Annotated[int, Strict(), Key(ge=0, le=MOST)]
Count = Annotated[int, Strict(), Key(ge=1, le=MOST)]
Number = Annotated[float, Strict(), Key(allow_inf_nan=False)]
Positive = Annotated[float, Strict(), Key(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Strict(), Key(min_length=1)]
Boolean = Annotated[bool, Strict()]


class Words:
    """Annotates a text that must be one of several words, which are known only when a job file is read."""

    def __init__(self, known: Callable[[], Iterable[str]]) -> None:
        self.known = known

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the text after all other checks."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, word: str) -> str:
        if word not in self.known():
            raise ValueError("unknown word")
        return word


class Model(BaseModel):
    """A mapping of the job file with a fixed set of keys; frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def fixed_key(default: Any = PydanticUndefined, **more: Any) -> Any:
    """Declare a key that a resume may not change, because checkpoints or other written files depend on it.

    Parameters
    ----------
    default, **more
        As for pydantic's Field.
    """
    return _declared(True, default, more)


def free_key(default: Any = PydanticUndefined, **more: Any) -> Any:
    """Declare a key that a resume may change; parameters as for `fixed_key`. For a section, its keys decide."""
    return _declared(False, default, more)


def _declared(fixed: bool, default: Any, more: dict[str, Any]) -> Any:
    extra = {**more.pop("json_schema_extra", {}), FIXED: fixed}
    return (
        Key(default, json_schema_extra=extra, **more)
        if "default_factory" not in more
        else Key(json_schema_extra=extra, **more)
    )


def changed_fixed_keys(old: Model, new: Model, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Find the keys that differ although a resume may not change them: name, old and new value of each."""
    for name, info in type(old).model_fields.items():
        before, now, key = getattr(old, name), getattr(new, name), f"{above}{info.alias or name}"
        if before == now:
            continue
        if isinstance(before, Model) and isinstance(now, Model):
            yield from changed_fixed_keys(before, now, f"{key}.")
        elif isinstance(info.json_schema_extra, dict) and info.json_schema_extra[FIXED]:
            yield _where_different(key, before, now)


def _where_different(key: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """Descend into mappings and sections while only one entry differs, for example to a field's shape."""
    of_both = [dict(value) if isinstance(value, Mapping | Model) else {} for value in (before, now)]
    names = [name for name in of_both[0] | of_both[1] if of_both[0].get(name) != of_both[1].get(name)]
    if len(names) != 1 or not all(names[0] in of for of in of_both):
        return key, before, now
    return _where_different(f"{key}.{names[0]}", of_both[0][names[0]], of_both[1][names[0]])


def refuse(problems: Iterable[Problem]) -> None:
    """Refuse a value within a validator, with a sentence for each problem; does nothing if there is none.

    The locations are relative to the value that the validator checks; `{key}` in a sentence stands for its whole name.
    """
    problems = tuple(problems)
    if problems:
        context: dict[str, Any] = {"problems": problems}
        raise PydanticCustomError("refused", "refused", context)


def origin(origins: Mapping[Location, Origin], location: Location) -> Origin | None:
    """Find where a key was set: the key itself, the nearest above, or the first below; None if unknown."""
    for end in range(len(location), 0, -1):
        if location[:end] in origins:
            return origins[location[:end]]
    return next((where for at, where in origins.items() if location and at[: len(location)] == location), None)


def stated(origins: Mapping[Location, Origin], location: Location) -> str:
    """Return the origin of a key, as the end of a sentence."""
    where = origin(origins, location)
    return "" if where is None else f" (line {where})" if isinstance(where, int) else f" ({where})"


def open_regular(path: Path, most: int | None = None) -> BinaryIO:
    """Open a file named by the user for reading, without blocking.

    Only a regular file: a pipe would block, and a device has no end.

    Parameters
    ----------
    path : Path
        Links are followed.
    most : int, optional
        Largest size in bytes.

    Raises
    ------
    OSError
        It cannot be opened, is not a regular file, or is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if most is not None and found.st_size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
