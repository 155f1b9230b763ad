"""The contents of random fields: every array of a step follows from the seed, the simulation, the step and the field.

spec.json, in the working directory, has `seed`, `ranks` (of a group), `steps`, `lengths` ({name: [least, most]}),
`fields` ({name: {dtype, shape, index, base, per}}) and optionally `idle`, the trainers that draw nothing.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from mpidata.dtypes import BFLOAT16, numpy_dtype

_NOT_SAID: dict[str, Any] = {"ragged": "packed", "gathers": False, "by_map": [], "local": [], "idle": []}
SPEC = _NOT_SAID | json.loads(Path("spec.json").read_text())


def chance(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([SPEC["seed"], *numbers])


# Replaces the step of constants.
ONCE = 1 << 20


def once(name: str) -> bool:
    """Return whether the field is put once per simulation."""
    return SPEC["fields"][name].get("per") == "simulation"


def lengths(simulation: int, step: int) -> dict[str, int]:
    """Return the lengths of a step by name; those of constants are the same in all steps."""
    of, of_all = chance(simulation, step), chance(simulation, ONCE)
    drawn = {
        name: (of.integers(at[0], at[1] + 1), of_all.integers(at[0], at[1] + 1)) for name, at in SPEC["lengths"].items()
    }
    held = {extent for name, entry in SPEC["fields"].items() if once(name) for extent in entry["shape"]}
    return {name: int(both[name in held]) for name, both in drawn.items()}


def varying(name: str) -> int:
    """Return the dimension that varies, or -1."""
    return next((d for d, extent in enumerate(SPEC["fields"][name]["shape"]) if isinstance(extent, str)), -1)


def given(name: str, simulation: int, step: int) -> bool:
    """Return whether the field is put in this step."""
    number, step = list(SPEC["fields"]).index(name), ONCE if once(name) else step
    return not SPEC["fields"][name].get("optional") or bool(chance(simulation, step, number, 3).integers(3))


def whole(name: str, simulation: int, step: int) -> np.ndarray[Any, Any]:
    """Return a field as trainers must receive it; for bfloat16, its bits."""
    entry, number, of_step = SPEC["fields"][name], list(SPEC["fields"]).index(name), lengths(simulation, step)
    step = ONCE if once(name) else step
    shape = [of_step[extent] if isinstance(extent, str) else extent for extent in entry["shape"]]
    of, dtype = chance(simulation, step, number), numpy_dtype(entry["dtype"])
    if not given(name, simulation, step):
        return np.zeros(shape, dtype)
    if entry.get("index"):
        return of.integers(0, max(1, of_step[entry["index"]]), shape, dtype)
    if entry["dtype"] == BFLOAT16:
        return (of.standard_normal(shape, np.float32).view(np.uint32) >> 16).astype(dtype)
    if dtype.kind == "c":
        return (of.standard_normal(shape) + 1j * of.standard_normal(shape)).astype(dtype)
    if dtype.kind == "f":
        return of.standard_normal(shape).astype(dtype)
    return of.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def parts(name: str, simulation: int, step: int, rank: int) -> list[tuple[slice, ...]]:
    """Return a rank's parts of a field in call order, cut along the varying dimension, or else the first."""
    entry, number, step = SPEC["fields"][name], list(SPEC["fields"]).index(name), ONCE if once(name) else step
    axis, ranks, of = varying(name), SPEC["ranks"], chance(simulation, step, number, 1)
    if not given(name, simulation, step):
        return []
    if not entry["shape"]:
        return [()] if rank == ranks - 1 else []
    extent = whole(name, simulation, step).shape[max(0, axis)]
    pieces = int(of.integers(1, 3)) * ranks
    ends = [0, *sorted(of.integers(0, extent + 1, pieces - 1).tolist()), extent]
    cuts = [slice(ends[i], ends[i + 1]) for i in range(pieces)]
    owner = np.sort(of.integers(0, ranks, pieces))  # some ranks have nothing
    return [(slice(None),) * max(0, axis) + (cut,) for cut, of_rank in zip(cuts, owner, strict=True) if of_rank == rank]
