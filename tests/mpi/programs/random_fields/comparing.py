"""Checks batches of each kind, and single samples, of random fields against what was put."""

from collections.abc import Callable
from typing import Any

import numpy as np
from contents import SPEC, given, lengths, once, varying, whole

from mpidata.tensors import array_of

PAD = -0.75


def steps_of(batch: dict[str, Any], window: int) -> list[tuple[int, int]]:
    simulations, steps = batch["simulation"].reshape(-1), batch["step"].reshape(-1)
    assert len(steps) == len(simulations) * window
    return [(int(simulations[i // window]), int(step)) for i, step in enumerate(steps)]


def compare(
    batch: dict[str, Any],
    window: int,
    ragged: str = "packed",
    constants: Callable[[int], dict[str, Any]] | None = None,
) -> None:
    """Check each array of a batch or single sample; `constants` returns a simulation's, if these come separately."""
    steps = steps_of(batch, window)
    of = {name: [lengths(*step)[name] for step in steps] for name in SPEC["lengths"]}
    assert batch["time"].reshape(-1).tolist() == [0.5 * step[1] + sum(lengths(*step).values()) for step in steps]
    for name, values in of.items():
        assert batch[name].reshape(-1).tolist() == values, (name, batch[name], values)
        assert (f"{name}_offsets" in batch) == (ragged == "packed" and batch["step"].ndim > 0)
        if f"{name}_offsets" in batch:
            assert batch[f"{name}_offsets"].tolist() == [0, *np.cumsum(values).tolist()]
    for name, entry in SPEC["fields"].items():
        if once(name) and constants is not None:
            _apart(name, batch, steps, constants)
            continue
        arrays = [whole(name, *step) for step in steps]
        if entry.get("optional"):
            assert batch[f"{name}_given"].reshape(-1).tolist() == [given(name, *step) for step in steps]
        assert str(batch[name].dtype) == f"torch.{entry['dtype']}"
        _COMPARE[ragged if varying(name) >= 0 else "alike"](name, batch[name], arrays, of)


def _apart(
    name: str, batch: dict[str, Any], steps: list[tuple[int, int]], constants: Callable[[int], dict[str, Any]]
) -> None:
    """Check the constants: the stream's for a batch, its own for a single sample."""
    empty = name in batch and not batch[name].numel()  # joined windows
    assert empty or (name in batch) == (batch["simulation"].ndim == 0)
    for simulation, step in steps:
        held = batch if name in batch else constants(simulation)
        wanted = whole(name, simulation, step)
        if SPEC["fields"][name].get("optional"):
            if f"{name}_given" in held and held is not batch:
                assert bool(held[f"{name}_given"]) == given(name, simulation, step)
            if not given(name, simulation, step):
                assert not array_of(held[name]).any()
                continue
        assert np.array_equal(array_of(held[name]), wanted), (name, simulation)


def _alike(name: str, came: Any, arrays: list[Any], of: dict[str, list[int]]) -> None:
    wanted = np.stack(arrays)
    assert np.array_equal(array_of(came).reshape(wanted.shape), wanted), name


def _packed(name: str, came: Any, arrays: list[Any], of: dict[str, list[int]]) -> None:
    if length := SPEC["fields"][name].get("index"):
        before = np.cumsum([0, *of[length]])[:-1]
        arrays = [array + array.dtype.type(by) for array, by in zip(arrays, before, strict=True)]
    assert np.array_equal(array_of(came), np.concatenate(arrays, varying(name))), name


def _nested(name: str, came: Any, arrays: list[Any], of: dict[str, list[int]]) -> None:
    for one, array in zip(came.unbind(), arrays, strict=True):
        assert np.array_equal(array_of(one), array), name


def _padded(name: str, came: Any, arrays: list[Any], of: dict[str, list[int]]) -> None:
    entry = SPEC["fields"][name]
    pad = -1 if entry.get("index") else PAD if came.is_floating_point() or came.is_complex() else 0
    pad = array_of(came.new_tensor([pad]))[0]
    found = array_of(came)
    found = found.reshape(len(arrays), *found.shape[found.ndim - arrays[0].ndim :])
    for place, array in zip(found, arrays, strict=True):
        own = np.zeros(place.shape, bool)
        own[tuple(map(slice, array.shape))] = True
        assert np.array_equal(place[own].reshape(array.shape), array), name
        assert (place[~own] == pad).all(), name
    assert found.shape[1 + varying(name)] == max(of[entry["shape"][varying(name)]]), name


_COMPARE = {"alike": _alike, "packed": _packed, "nested": _nested, "padded": _padded}
