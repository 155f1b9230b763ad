"""What all models of the job file share: strict scalars, their base class, and how a validator refuses a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict
from pydantic import Field as Key
from pydantic_core import PydanticCustomError

__all__ = ["MOST", "Boolean", "Count", "Key", "Location", "Model", "Natural", "Number", "Positive", "Problem", "Text"]
__all__ += ["origin", "refuse", "stated"]

Location = tuple[str | int, ...]
"""Keys and indices that lead to a value of the job file."""

Problem = tuple[Location, str]
"""A sentence about the value at a location."""

MOST = 2**31 - 1
"""Of a whole number for which nothing else is said."""

# Strict: `ranks: true` or `ranks: 2.0` are mistakes, not ranks: 1 or 2.
Natural = Annotated[int, Strict(), Key(ge=0, le=MOST)]
Count = Annotated[int, Strict(), Key(ge=1, le=MOST)]
Number = Annotated[float, Strict(), Key(allow_inf_nan=False)]
Positive = Annotated[float, Strict(), Key(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Strict(), Key(min_length=1)]
Boolean = Annotated[bool, Strict()]


class Model(BaseModel):
    """A mapping of the job file with a fixed set of keys; frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def refuse(problems: Iterable[Problem]) -> None:
    """Refuse a value within a validator, with a sentence for each problem; does nothing where there is none.

    The locations are relative to the value that the validator checks; `{key}` in a sentence stands for its whole name.
    """
    problems = tuple(problems)
    if problems:
        context: dict[str, Any] = {"problems": problems}
        raise PydanticCustomError("refused", "refused", context)


def origin(origins: Mapping[Location, str], location: Location) -> str:
    """Find where a key was set, such as `line 3`: it, the nearest above it, or else the first below; may be empty."""
    for end in range(len(location), 0, -1):
        if location[:end] in origins:
            return origins[location[:end]]
    return next((where for at, where in origins.items() if location and at[: len(location)] == location), "")


def stated(origins: Mapping[Location, str], location: Location) -> str:
    """Write the origin of a key as sentences end with it."""
    where = origin(origins, location)
    return f" ({where})" if where else ""
