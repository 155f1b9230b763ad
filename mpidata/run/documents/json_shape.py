"""The types that a document must have, key by key, and the first value in it that has another one."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Items", "Keys", "Kind", "Nullable", "Shape", "Values", "Variants"]

_LONGEST = 40


class Shape(ABC):
    """What a value must look like."""

    @abstractmethod
    def fault(self, value: object, key: str = "") -> str | None:
        """Return a clause about the first value that differs, with its key; None if there is none."""


@dataclass(frozen=True)
class Kind(Shape):
    """A value without parts that have shapes; `what` completes "is not", for example `a number`."""

    what: str
    accepts: Callable[[Any], bool]

    def fault(self, value: object, key: str = "") -> str | None:
        """Return a clause about the value; None if it is accepted."""
        return None if self.accepts(value) else _differs(value, self.what, key)


@dataclass(frozen=True)
class Nullable(Shape):
    """Null, or a value of a shape."""

    shape: Shape

    def fault(self, value: object, key: str = "") -> str | None:
        """Return the shape's clause about a value that is not null."""
        return None if value is None else self.shape.fault(value, key)


@dataclass(frozen=True)
class Items(Shape):
    """A list of at least `least` items of one shape."""

    item: Shape
    least: int = 0

    def fault(self, value: object, key: str = "") -> str | None:
        """Return a clause about the first item that differs, or about the value."""
        if not isinstance(value, list):
            return _differs(value, "a list", key)
        if len(value) < self.least:
            return f"{_named(key)} has {len(value)} items instead of {self.least} or more"
        return next(filter(None, (self.item.fault(one, f"{key}[{i}]") for i, one in enumerate(value))), None)


@dataclass(frozen=True)
class Values(Shape):
    """An object with any keys, whose values have one shape."""

    value: Shape

    def fault(self, value: object, key: str = "") -> str | None:
        """Return a clause about the first value that differs, or about the object."""
        if not isinstance(value, dict):
            return _differs(value, "an object", key)
        return next(filter(None, (self.value.fault(one, _below(key, name)) for name, one in value.items())), None)


@dataclass(frozen=True)
class Keys(Shape):
    """An object with known keys; others may have any value.

    Attributes
    ----------
    of : mapping
        Shapes by key.
    needs : tuple of str
        Keys that may not be missing.
    together : tuple of str
        Keys of which all or none are missing.
    equal : tuple of str
        Keys whose lists must be equally long, as far as they exist.
    """

    of: Mapping[str, Shape]
    needs: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    def fault(self, value: object, key: str = "") -> str | None:
        """Return a clause about the first key that is missing or whose value differs, or about the object."""
        if not isinstance(value, dict):
            return _differs(value, "an object", key)
        needs = self.needs + (self.together if any(name in value for name in self.together) else ())
        for name in needs:
            if name not in value:
                return f"{_named(_below(key, name))} is missing"
        for name, shape in self.of.items():
            if name in value and (clause := shape.fault(value[name], _below(key, name))) is not None:
                return clause
        lists = [name for name in self.equal if name in value]
        for name in lists[1:]:
            if len(value[name]) != len(value[lists[0]]):
                return f"{_named(_below(key, name))} and {_named(_below(key, lists[0]))} differ in length"
        return None


@dataclass(frozen=True)
class Variants(Shape):
    """An object whose shape depends on the text under `key`."""

    key: str
    of: Mapping[str, Shape]
    other: Shape

    def fault(self, value: object, key: str = "") -> str | None:
        """Return the clause of the shape that applies."""
        text = value.get(self.key) if isinstance(value, dict) else None
        shape = self.of.get(text, self.other) if isinstance(text, str) else self.other
        return shape.fault(value, key)


def _below(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _named(key: str) -> str:
    return f"'{key}'" if key else "its content"


def _differs(value: object, what: str, key: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # YAML has keys that JSON has not; an integer may have many digits
        text = type(value).__name__
    return f"{_named(key)} is {text if len(text) <= _LONGEST else f'{text[:_LONGEST]}...'}, not {what}"
