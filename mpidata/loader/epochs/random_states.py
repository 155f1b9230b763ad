"""The states of the random generators that a sampler may draw from, so that it draws the same again."""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

__all__ = ["States", "drawn_as_in", "random_states"]

States: TypeAlias = dict[str, Any]
"""By name; as JSON has it."""


def random_states(sampler: Any) -> States:
    """Give the states of random, numpy and torch, and of the generators that a sampler has; as JSON has it."""
    numpy_state: Any = np.random.get_state()
    name, keys, *rest = numpy_state
    return {
        "random": _listed(random.getstate()),
        "numpy": [name, _text(np.asarray(keys, "<u4").tobytes()), *rest],
        "torch": [_text(generator.get_state().numpy().tobytes()) for generator in _generators(sampler)],
    }


@contextlib.contextmanager
def drawn_as_in(states: States, sampler: Any) -> Iterator[None]:
    """Put the generators into these states, and back afterwards."""
    before = random_states(sampler)
    _put(states, sampler)
    try:
        yield
    finally:
        _put(before, sampler)


def _put(states: States, sampler: Any) -> None:
    version, words, gauss = states["random"]
    random.setstate((version, tuple(words), gauss))
    name, keys, *rest = states["numpy"]
    np.random.set_state((name, np.frombuffer(base64.b64decode(keys), "<u4"), *rest))
    for generator, text in zip(_generators(sampler), states["torch"], strict=False):
        generator.set_state(torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8))


def _generators(sampler: Any) -> list[torch.Generator]:
    """List torch's own, and those of a sampler and of what it draws from, each once."""
    found = [torch.default_generator]
    seen = set[int]()
    while sampler is not None and id(sampler) not in seen:
        seen.add(id(sampler))
        values = vars(sampler).values() if hasattr(sampler, "__dict__") else ()
        found += [value for value in values if isinstance(value, torch.Generator) and value not in found]
        sampler = getattr(sampler, "sampler", None)
    return found


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _listed(state: Any) -> list[Any]:
    version, words, gauss = state
    return [version, list(words), gauss]
