"""The calls that put random fields, for solvers in any language: C and Fortran solvers read them from files.

`python calls.py COUNT` writes calls/<simulation>-<step>-<rank> for COUNT simulations, with the samples' times.
"""

import dataclasses
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from contents import SPEC, chance, given, lengths, once, parts, varying, whole

from mpidata.dtypes import BFLOAT16, array_dtype
from mpidata.native.constants import DTYPES

Array = np.ndarray[Any, Any]
HOW = {
    name: number for number, name in enumerate(("end", "put", "block", "iput", "mapped", "indices", "strided", "kill"))
}


@dataclasses.dataclass(frozen=True)
class Call:
    """`extra` is a start or the rows of a map. If `how` is "kill", the rank dies unless the file `name` exists."""

    how: str
    name: str
    values: Array
    extra: Any = None


def time_of(simulation: int, step: int) -> float:
    return 0.5 * step + sum(lengths(simulation, step).values())


def calls(simulation: int, step: int, rank: int) -> Iterator[Call]:
    """Yield a rank's calls in a step: parts and blocks, by put, put_block, iput, maps, and in local numbers."""
    kills = [tuple(kill) for kill in SPEC.get("kills", [])]
    for number, (name, entry) in enumerate(SPEC["fields"].items()):
        if (simulation, step, number, rank) in kills:
            place = kills.index((simulation, step, number, rank))
            yield Call("kill", f"killed-{place}", np.zeros(0))
        if once(name) and step:
            continue
        of, values = chance(simulation, step, number, 2, rank), whole(name, simulation, step)
        base, dtype = values.dtype.type(entry.get("base", 0)), array_dtype(entry["dtype"])
        if name in SPEC["by_map"]:
            yield from by_map(simulation, name, (values + base).view(dtype), step, rank)
            continue
        ghosts = chance(SPEC["seed"], number, rank, 4).permutation(most(entry)) if name in SPEC["local"] else None
        for cut in parts(name, simulation, step, rank):
            if ghosts is not None:
                local = np.argsort(ghosts)[values[cut]] + entry["base"]
                yield Call("indices", name, local.astype(values.dtype), ghosts)
                continue
            part = np.array(values[cut] + base, order="C").view(dtype)
            start = [piece.start for piece in cut] + [0] * (values.ndim - len(cut))
            is_part = varying(name) >= 0 or not cut
            if bool(of.integers(2)) and part.size > 0:
                yield Call("iput", name, part, None if is_part else start)
            else:
                yield Call("put" if is_part else "block", name, part, None if is_part else start)


def most(entry: dict[str, Any]) -> int:
    """Return the most rows that the length of an index field can have."""
    return max(1, SPEC["lengths"][entry["index"]][1])


def by_map(simulation: int, name: str, values: Array, step: int, rank: int) -> Iterator[Call]:
    """Yield the calls that put this rank's rows in random order, by one or two maps, the same in all even steps."""
    if not given(name, simulation, step):
        return
    axis, number = max(0, varying(name)), list(SPEC["fields"]).index(name)
    of = chance(SPEC["seed"], number, step % 2 and step, 5)
    mine = np.array_split(of.permutation(values.shape[axis]), SPEC["ranks"])[rank]
    for rows in np.array_split(mine, 1 + number % 2):
        yield Call("mapped", name, np.take(values, rows, axis), rows)


def packed(call: Call, number: int) -> bytes:
    """Return as int64: how, dtype, dimensions, bytes, number of extras (-1: none), shape, extras; then name, values."""
    how, extra = call.how, [] if call.extra is None else [int(value) for value in call.extra]
    if how in ("put", "block") and call.values.ndim and number % 2:
        how = "strided"
    dtype, array = SPEC["fields"][call.name]["dtype"] if call.name in SPEC["fields"] else "uint8", call.values
    if SPEC.get("language") == "fortran" and dtype in ("float16", BFLOAT16):  # Fortran has no such kind
        bits = array.astype(np.float32) if dtype == "float16" else array.view(np.uint16).astype(np.uint32) << 16
        dtype, array = "float32", bits.view(np.float32)
    values = np.ascontiguousarray(array).tobytes()
    n_extra = -1 if call.extra is None else len(extra)
    head = [HOW[how], DTYPES[dtype].number, call.values.ndim, len(values), n_extra, *call.values.shape, *extra]
    return np.array(head, np.int64).tobytes() + call.name.encode().ljust(64, b"\0") + values


def write(simulations: int) -> None:
    os.makedirs("calls", exist_ok=True)
    for simulation in range(simulations):
        for step in range(SPEC["steps"]):
            for rank in range(SPEC["ranks"]):
                contents = b"".join(packed(call, at) for at, call in enumerate(calls(simulation, step, rank)))
                end = np.array([0], np.int64).tobytes() + np.array([time_of(simulation, step)]).tobytes()
                with open(f"calls/{simulation}-{step}-{rank}", "wb") as file:
                    file.write(contents + end)


if __name__ == "__main__":
    write(int(sys.argv[1]))
