"""States of the random generators that a sampler may draw from, to repeat and to continue its draws."""

from __future__ import annotations

import base64
import contextlib
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import torch

__all__ = ["States", "continue_in", "drawn_as_in", "of_process", "of_sampler", "set_of_sampler"]

States: TypeAlias = dict[str, Any]
"""By name, in types of JSON."""

_DEEP = 4  # samplers within samplers

_continued: list[States] = []  # the last one that was restored in this process


def of_process() -> States:
    """Return the states of random, numpy and torch."""
    return {
        "random": _of_random(random),
        "numpy": _of_numpy(np.random.get_state(legacy=False)),
        "torch": _of_torch(torch.default_generator),
    }


def of_sampler(sampler: Any) -> list[Any]:
    """Return the states of the generators that are attributes of a sampler or of one within it."""
    return [_state(generator) for generator in _generators(sampler)]


def set_of_sampler(sampler: Any, states: list[Any]) -> None:
    """Restore the states of these generators."""
    for generator, state in zip(_generators(sampler), states, strict=False):
        _put(generator, state)


@contextlib.contextmanager
def drawn_as_in(process: States) -> Iterator[None]:
    """Use these states for the generators of the process, and restore the former ones afterwards."""
    before = of_process()
    _put_process(process)
    try:
        yield
    finally:
        _put_process(before)


def continue_in(process: States | None) -> None:
    """Restore the states of the process's generators at its interruption, once.

    Loaders of one checkpoint have the same states, but only the first loop that continues is at that position.
    """
    if process is not None and [process] != _continued:
        _put_process(process)
        _continued[:] = [process]


def _put_process(states: States) -> None:
    version, words, gauss = states["random"]
    random.setstate((version, tuple(words), gauss))
    np.random.set_state(_to_numpy(states["numpy"]))
    torch.default_generator.set_state(_to_torch(states["torch"]))


def _generators(sampler: Any) -> list[Any]:
    """List the generators among the attributes of a sampler and of those within it, each once."""
    found: list[Any] = []
    seen, level = {id(sampler)}, [sampler]
    for _ in range(_DEEP):
        values = [value for thing in level for value in getattr(thing, "__dict__", {}).values()]
        level = []
        for value in values:
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)):
                found.append(value)
            elif isinstance(value, torch.utils.data.Sampler):
                level.append(value)
    return found


def _state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return _of_torch(generator)
    if isinstance(generator, random.Random):
        return _of_random(generator)
    if isinstance(generator, np.random.RandomState):
        return _of_numpy(generator.get_state(legacy=False))
    return _of_numpy(generator.bit_generator.state)


def _put(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(_to_torch(state))
    elif isinstance(generator, random.Random):
        version, words, gauss = state
        generator.setstate((version, tuple(words), gauss))
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(_to_numpy(state))
    else:
        generator.bit_generator.state = _to_numpy(state)


def _of_random(generator: Any) -> list[Any]:
    version, words, gauss = generator.getstate()
    return [version, list(words), gauss]


def _of_torch(generator: torch.Generator) -> str:
    return base64.b64encode(generator.get_state().numpy().tobytes()).decode()


def _to_torch(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


def _of_numpy(state: Any) -> Any:
    """Convert arrays within a state to lists with their dtype."""
    if isinstance(state, np.ndarray):
        return {"dtype": state.dtype.str, "values": state.tolist()}
    return {name: _of_numpy(value) for name, value in state.items()} if isinstance(state, dict) else state


def _to_numpy(state: Any) -> Any:
    if not isinstance(state, dict):
        return state
    if state.keys() == {"dtype", "values"}:
        return np.array(state["values"], state["dtype"])
    return {name: _to_numpy(value) for name, value in state.items()}
