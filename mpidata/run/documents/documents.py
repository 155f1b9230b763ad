"""Reading the JSON documents of a run folder, each checked for the types of what mpidata uses of it.

A run folder may be damaged, edited or of another version. A document of other types is ignored, with a sentence for the
user, so that no code behind these readers checks types.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

__all__ = ["Lines", "fault", "ignored", "read_document"]

_LONGEST = 40


def fault(document: object, kind: TypeAdapter[Any]) -> str | None:
    """Return a clause about the first value of a document that has another type, with its key; None if none has.

    Parameters
    ----------
    document : object
        As read from JSON or YAML.
    kind : TypeAdapter
        One of mpidata.run.documents.types; it may leave out keys, which may then have any value.
    """
    try:
        kind.validate_python(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ""
        for part in (part for part in first["loc"] if not str(part).startswith("<")):  # the tag of a union
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
        name = f"'{key}'" if key else "its content"
        if first["type"] == "missing":
            return f"{name} is missing"
        return f"{name} is {_shown(first['input'])} ({first['msg'][:1].lower()}{first['msg'][1:]})"
    return None


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # YAML has keys that JSON has not; an integer may have many digits
        text = type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def read_document(path: Path, kind: TypeAdapter[Any]) -> tuple[dict[str, Any], str]:
    """Read a document; returns its object, empty if it is missing or ignored, and why it is ignored, else ""."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}, ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}, ignored(path, "it is not a JSON document")
    clause = fault(found, kind)
    return ({}, ignored(path, clause)) if clause is not None else (found, "")


def ignored(what: object, clause: str) -> str:
    """Return the sentence that a file is ignored."""
    return f"{what} is ignored: {clause}. Restore the file, or use the version of mpidata that wrote it."


class Lines:
    """Reads a file of JSON objects, one a line; ignores lines of other types, and incomplete ones.

    Parameters
    ----------
    path : Path
        The file; may be missing.
    kind : TypeAdapter
        Of each line.
    """

    def __init__(self, path: Path, kind: TypeAdapter[Any]) -> None:
        self._path, self._kind = path, kind
        self._seen = self._ignored = 0
        self._first = ""

    @property
    def problem(self) -> str:
        """Why lines read so far are ignored; "" if none is, except incomplete ones, which a killed process leaves."""
        others = {0: "", 1: "", 2: " So is another line of it."}
        return self._first + others.get(self._ignored, f" So are {self._ignored - 1} other lines of it.")

    def read(self) -> Iterator[dict[str, Any]]:
        """Read the whole file."""
        with contextlib.suppress(OSError), open(self._path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if (found := self.parse(line)) is not None:
                    yield found

    def parse(self, line: str) -> dict[str, Any] | None:
        """Return the object of the next line; None if it is ignored."""
        self._seen += 1
        try:
            found: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError):
            return None
        clause = fault(found, self._kind)
        if clause is None:
            return found
        self._ignored += 1
        self._first = self._first or ignored(f"Line {self._seen} of {self._path}", clause)
        return None
