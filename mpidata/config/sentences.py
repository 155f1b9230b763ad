"""Sentences for the errors of pydantic: the key, its value, and the fix."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mpidata.config.base import Location, Problem
from mpidata.config.describe import choices, find, key_of, kind, models
from mpidata.config.job import Job
from mpidata.config.parameters import SAMPLERS

__all__ = ["dotted", "missing", "problems_of", "shown", "suggestion"]


def dotted(location: Location) -> str:
    """Return the name of a key for sentences, such as `fields.u.shape[0]`."""
    name = ""
    for part in location:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name


def shown(value: Any, most: int = 60) -> str:
    """Return a value as one short line."""
    if value is None:
        return "empty"
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 3] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `Did you mean 'x'?` with the nearest of the known words, or an empty text."""
    lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f"Did you mean '{lower[near[0]]}'?" if near else ""


def missing(location: Location) -> str:
    """Return a sentence about a missing key."""
    _, info = find(Job, location)
    example = f", for instance '{location[-1]}: {info.examples[0]}'" if info is not None and info.examples else ""
    return f"missing key '{dotted(location)}'. Add it{example}."


def problems_of(error: ErrorDetails) -> Iterator[Problem]:
    """Return the problems of one pydantic error, with locations from the root of the job file."""
    # Tags of a union are in angle brackets, '[key]' marks an error of a mapping's key: neither is in the file.
    location = tuple(part for part in error["loc"] if not (isinstance(part, str) and part[:1] in ("<", "[")))
    if error["type"] == "refused":
        for inner, sentence in error["ctx"]["problems"]:
            whole = (*location, *inner)
            yield whole, sentence.replace("{key}", f"'{dotted(whole)}'")
    elif error["type"] != "default_factory_not_called":  # it only follows from an error in another key
        yield location, _sentence(error, location)


def _sentence(error: ErrorDetails, location: Location) -> str:
    name = dotted(location)
    owner, info = find(Job, location)
    if error["type"] == "extra_forbidden":
        return _unknown(name, str(location[-1]), [key_of(key, known) for key, known in owner.model_fields.items()])
    if error["type"] == "missing" and info is not None:
        return missing(location)
    value = error["input"]
    wanted = _wanted(error, location, info)
    fix = suggestion(value, choices(info)) if isinstance(value, str) and info is not None else ""
    if not fix and location[:-1] == ("parameters", "space"):
        fix = f"For instance: {location[-1]}: [0.01, 0.1]."
    elif not fix and info is not None and info.examples and owner.model_fields.get(str(location[-1])) is info:
        fix = f"For instance: {location[-1]}: {info.examples[0]}."
    return f"'{name}' is {shown(value)}. It must be {wanted}. {fix}".rstrip()


def _wanted(error: ErrorDetails, location: Location, info: FieldInfo | None) -> str:
    """Return what the value must be: from pydantic's error for the contents of a key, from the model for the key."""
    within = isinstance(location[-1], int) or location[:-1] in (("parameters", "space"), ("fields",))
    if error["type"] == "finite_number":
        return "a finite number"
    if within or info is None:
        words = {
            "int_type": "a whole number",
            "float_type": "a number",
            "string_type": "a text",
            "string_too_short": "a text that is not empty",
            "tuple_type": "a list: [low, high]",
            "model_type": "a mapping, for instance {shape: [64, 64]}",
            "greater_than_equal": f"at least {error.get('ctx', {}).get('ge')}",
            "less_than_equal": f"at most {error.get('ctx', {}).get('le')}",
            "invalid_key": "under a key that is a text",
        }
        return words.get(error["type"], error["msg"].lower())
    wanted = kind(info)
    if error["type"] == "string_too_short":
        wanted += " that is not empty"
    if error["type"] == "less_than_equal" and "at most" not in wanted:
        wanted += f", at most {error['ctx']['le']}"
    return wanted if wanted.startswith(("one of", "true")) else f"a {wanted}"


def _unknown(name: str, key: str, known: list[str]) -> str:
    fix = suggestion(key, known)
    if not fix:
        homes = [
            f"{section}.<name>.{key}" if section == "lengths" else f"{section}.{key}"
            for section, info in Job.model_fields.items()
            for model in models(info.annotation)
            if section != "fields" and any(key == key_of(n, i) for n, i in model.model_fields.items())
        ]
        homes += [key] if key in Job.model_fields else []
        fix = f"It belongs at '{homes[0]}'." if homes else f"The keys here are {', '.join(known)}."
    return f"unknown key '{name}'. {fix}"


def sampler_problems(sampler: object) -> Iterator[Problem]:
    """Refuse a sampler that is neither known nor written as `module:Class`."""
    if isinstance(sampler, str) and sampler and sampler not in SAMPLERS and ":" not in sampler:
        fix = suggestion(sampler, SAMPLERS) or f'Choose one of {", ".join(SAMPLERS)}, or write "module:Class".'
        yield ("parameters", "sampler"), f"'parameters.sampler' is {sampler!r}. {fix}"
