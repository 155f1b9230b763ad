"""Which values a key takes, in words: from the models' types, for error messages and the reference page."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mpidata.config.base import MOST, Location, Words

__all__ = ["choices", "find", "key_of", "kind", "models"]


def key_of(name: str, info: FieldInfo) -> str:
    """Return the name of a key in the job file."""
    return info.alias or name


def kind(info: FieldInfo) -> str:
    """Return which values the key takes, such as `whole number, at least 1`."""
    if isinstance(info.json_schema_extra, dict) and "kind" in info.json_schema_extra:
        return str(info.json_schema_extra["kind"])
    words = choices(info)
    if words:
        return "one of " + ", ".join(words)
    parts = [_base(info.annotation)]
    bounds = list(_metadata(info))
    lowest = [item.ge for item in bounds if isinstance(item, Ge)]
    above = [item.gt for item in bounds if isinstance(item, Gt)]
    highest = [item.le for item in bounds if isinstance(item, Le)]
    if lowest:
        parts.append(f"at least {max(lowest)}")  # type: ignore[type-var]
    if above:
        parts.append(f"more than {max(above)}")
    if highest and min(highest) != MOST:  # type: ignore[type-var]
        parts.append(f"at most {min(highest)}")  # type: ignore[type-var]
    return ", ".join(parts)


def choices(info: FieldInfo) -> tuple[str, ...]:
    """Return the words that the key takes; none if other values are allowed."""
    if typing.get_origin(info.annotation) is Literal:
        return typing.get_args(info.annotation)
    return tuple(word for item in info.metadata if isinstance(item, Words) for word in item.known())


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Find the models within a type: itself, or the values of a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models(part)


def find(model: type[BaseModel], location: Location) -> tuple[type[BaseModel], FieldInfo | None]:
    """Find the model that holds the last key of a location, and that key.

    For an index or a free name it is the key above; None if the model has no such key.
    """
    if not location:
        return model, None
    name, rest = location[0], location[1:]
    info = next((info for key, info in model.model_fields.items() if name in (key, info.alias)), None)
    inner = next(models(info.annotation), None) if info is not None else None
    if info is not None and typing.get_origin(info.annotation) is dict:
        rest = rest[1:]
    return find(inner, rest) if inner is not None and rest else (model, info)


def _metadata(info: FieldInfo) -> Iterator[Any]:
    yield from info.metadata
    for part in typing.get_args(info.annotation):
        yield from getattr(part, "__metadata__", ())
        for item in getattr(part, "__metadata__", ()):
            yield from getattr(item, "metadata", ())


def _base(annotation: Any) -> str:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    names = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    return names.get(annotation, str(annotation))
