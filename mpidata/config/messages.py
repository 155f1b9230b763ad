"""Sentences for what pydantic finds wrong: the key, its value, and the fix."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import ErrorDetails

from mpidata.config.base import Location, Problem
from mpidata.config.describe import choices, find, key_of, kind, models
from mpidata.config.job import Job
from mpidata.config.parameters import SAMPLERS

__all__ = ["dotted", "problems_of", "shown", "suggestion"]


def dotted(location: Location) -> str:
    """The name of a key as sentences have it, such as `fields.u.shape[0]`."""
    name = ""
    for part in location:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name


def shown(value: Any, most: int = 60) -> str:
    """A value in one short line, as YAML would have it."""
    if value is None:
        return "empty"
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 3] + "..."


def suggestion(word: str, known: Iterable[str]) -> str:
    """`Did you mean 'x'?` with the nearest of the known words, or an empty text."""
    lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    return f"Did you mean '{lower[near[0]]}'?" if near else ""


def problems_of(error: ErrorDetails) -> Iterator[Problem]:
    """The problems behind one error of pydantic's, with locations from the root of the job file."""
    # Tags of a union stand in angle brackets, '[key]' marks an error of a mapping's key: neither is in the file.
    location = tuple(part for part in error["loc"] if not (isinstance(part, str) and part[:1] in ("<", "[")))
    if error["type"] == "refused":
        for inner, sentence in error["ctx"]["problems"]:
            whole = (*location, *inner)
            yield whole, sentence.replace("{key}", f"'{dotted(whole)}'")
    else:
        yield location, _sentence(error, location)


def _sentence(error: ErrorDetails, location: Location) -> str:
    name = dotted(location)
    owner, info = find(Job, location)
    if error["type"] == "extra_forbidden":
        return _unknown(name, str(location[-1]), [key_of(key, known) for key, known in owner.model_fields.items()])
    if error["type"] == "missing" and info is not None:
        example = f", for instance '{location[-1]}: {info.examples[0]}'" if info.examples else ""
        return f"missing key '{name}'. Add it{example}."
    value = error["input"]
    wanted = kind(info) if info is not None else error["msg"]
    if len(location) > 1 and error["type"] not in ("too_long", "too_short"):
        wanted = {"int_type": "whole number", "float_type": "number", "string_type": "text"}.get(
            error["type"] if isinstance(location[-1], int) or location[:2] == ("parameters", "space") else "", wanted
        )
    if error["type"] == "finite_number":
        wanted = "finite number"
    near = suggestion(value, choices(info)) if isinstance(value, str) and info is not None else ""
    article = "" if wanted.startswith(("one of", "true")) else "a "
    fix = near or (f"For instance: {location[-1]}: {info.examples[0]}." if info is not None and info.examples else "")
    return f"'{name}' is {shown(value)}. It must be {article}{wanted}. {fix}".rstrip()


def _unknown(name: str, key: str, known: list[str]) -> str:
    fix = suggestion(key, known)
    if not fix:
        homes = [
            f"{section}.{key}"
            for section, info in Job.model_fields.items()
            for model in models(info.annotation)
            if section != "fields" and any(key == key_of(n, i) for n, i in model.model_fields.items())
        ]
        homes += [key] if key in Job.model_fields else []
        fix = f"It belongs at '{homes[0]}'." if homes else f"The keys here are {', '.join(known)}."
    return f"unknown key '{name}'. {fix}"


def sampler_problems(sampler: object) -> Iterator[Problem]:
    """A sampler that is neither known nor written as `module:Class`."""
    if isinstance(sampler, str) and sampler and sampler not in SAMPLERS and ":" not in sampler:
        fix = suggestion(sampler, SAMPLERS) or f"Choose one of {', '.join(SAMPLERS)}, or write \"module:Class\"."
        yield ("parameters", "sampler"), f"'parameters.sampler' is {sampler!r}. {fix}"
