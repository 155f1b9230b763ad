"""Jobs whose arrays vary by a byte around sizes, read from the code, at which the code takes another path."""

import dataclasses
import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np
from jobs import JobFolder, Result, python

from mpidata.config import job as job_file
from mpidata.native import constants
from mpidata.native.constants import DTYPES

PUT, BLOCK, IPUT, IPUT_BLOCK = range(4)  # as in thresholds.c
PLACES = 1 << 16  # where the values of a step may begin
DTYPE = ("uint8", "float32", "float64")  # of the fields, in order: the first one takes up odd bytes
AROUND = (-1, 0, 1)
IN_FLIGHT = 8  # as Job.in_flight


def cache(level: int, unknown: int) -> int:
    """Return the bytes of a cache level, as copy.c sees them."""
    told = subprocess.run(["getconf", f"LEVEL{level}_CACHE_SIZE"], capture_output=True, text=True).stdout.strip()
    return int(told) if told.isdigit() and int(told) else unknown


def of_a_message() -> list[int]:
    """Return the thresholds of blocks, pieces and messages in bytes."""
    return [
        constants.BLOCK_ANYWHERE, constants.PAST_CACHE_WORTH, constants.BLOCK_SMALL, constants.PIECE_SMALL,
        constants.BUNDLE_WORTH, constants.ALONG_MAX, constants.BUNDLE_MAX, constants.COPY_LARGE,
    ]  # fmt: skip


def of_a_part(batch: int, ranks: int) -> dict[str, int]:
    """Return the thresholds, in bytes, of what one rank puts of each sample."""
    return {
        "piece": constants.PIECE_SMALL,
        "block": constants.BLOCK_SMALL,
        "along": constants.ALONG_MAX,
        "bundle": constants.BUNDLE_MAX,
        "in flight": job_file._IN_FLIGHT_BYTES // IN_FLIGHT,
        "huge page": constants.HUGE_PAGE,
        "lent": constants.LARGE,
        "cache": cache(3, constants.CACHE_UNKNOWN) // 2 // max(1, batch) // ranks,
    }


@dataclasses.dataclass
class Drawn:
    """A job: elements of each field by table, step and rank, the calls of thresholds.c, and how trainers take them."""

    varies: bool
    dtypes: list[str]
    elements: list[list[list[list[int]]]]
    calls: list[tuple[int, ...]]
    keys: dict[str, Any]
    batch: int
    torch: bool = False
    carried: bool = False

    @property
    def steps(self) -> int:
        return len(self.elements[0])

    def totals(self, table: int, step: int) -> list[int]:
        """Return the elements of each field, of all ranks together."""
        return [sum(of) for of in zip(*self.elements[table][step], strict=True)]


def share_out(chance: random.Random, bytes_: int, dtypes: list[str]) -> list[int]:
    """Choose the elements of each field, which have `bytes_` bytes together."""
    counts, left = [0] * len(dtypes), bytes_
    for at in range(len(dtypes) - 1, 0, -1):
        size = DTYPES[dtypes[at]].size
        counts[at] = chance.choice([0, left // 2, left - size, left]) // size if left >= size else 0
        left -= counts[at] * size
    return [left, *counts[1:]]


def cut(chance: random.Random, elements: int, size: int) -> list[int]:
    """Choose the ends of the blocks, some of which are about as large as a threshold."""
    ends = [0]
    while ends[-1] < elements and len(ends) < 9 and chance.random() < 0.6:
        near = chance.choice(of_a_message()) // size + chance.choice(AROUND)
        ends.append(min(elements, ends[-1] + near))
    return [*ends, elements] if ends[-1] < elements or len(ends) == 1 else ends


def draw_calls(chance: random.Random, drawn: Drawn) -> Iterator[tuple[int, ...]]:
    """Generate the calls of all ranks, in the order of tables and steps."""
    for table, step in product(range(len(drawn.elements)), range(drawn.steps)):
        begin = [0] * len(drawn.dtypes)
        for rank, elements in enumerate(drawn.elements[table][step]):
            for field in chance.sample(range(len(drawn.dtypes)), len(drawn.dtypes)):
                dtype = drawn.dtypes[field]
                if dtype == "float32" and chance.random() < 0.2:
                    dtype = "float64"  # the library converts it
                ends = cut(chance, elements[field], DTYPES[drawn.dtypes[field]].size)
                for first, last in zip(ends, ends[1:], strict=False):
                    how = chance.choice([PUT, IPUT]) if drawn.varies else chance.choice([BLOCK, IPUT_BLOCK])
                    at = begin[field] + first
                    yield table, step, rank, field, how, DTYPES[dtype].number, at, last - first
                begin[field] += elements[field]


def draw_keys(chance: random.Random, ranks: int, batch: int) -> dict[str, Any]:
    policy = chance.choice(["fifo", "firo", "reservoir"])
    return {
        "trainers": {"ranks": chance.choice([1, 2])},
        "solvers": {"groups": chance.choice([1, 2]), "ranks_per_group": ranks},
        "samples": {"statistics": chance.random() < 0.5},
        "buffer": {"policy": policy, "capacity": chance.choice([2, 10]) * max(1, batch), "tail": "drop"}
        | ({"watermark": 1} if policy == "firo" else {})
        | ({"repeats": 1.5} if policy == "reservoir" else {}),
    }


def draw_lengths(seed: int) -> Drawn:
    """Generate lengths that cross all message thresholds within a simulation, and steps that fill one to a byte."""
    chance = random.Random(seed)
    ranks, batch = chance.choice([1, 2]), chance.choice([0, 0, 3])
    dtypes = [*DTYPE[: chance.randint(1, 3)]]
    sizes = [threshold + by for threshold in of_a_message() for by in AROUND]
    sizes = [*dict.fromkeys(sizes), 0, 1]  # an even number of steps, so that two trainers have equally many
    sizes += [constants.PIECE_SMALL + by for by in AROUND[: len(sizes) % 2]]
    # Headers are a multiple of the boundary: with one of these, a bundle has exactly as much as is worth sending.
    padded = [constants.PIECE_SMALL - lines * constants.BOUNDARY for lines in range(2, 12)]
    tables = [
        chance.sample(sizes, len(sizes)),
        [constants.PIECE_SMALL] * len(sizes),
        *([size] * len(sizes) for size in padded),
    ]
    elements = []
    for table in tables:
        elements.append([])
        for size in table:
            by = chance.choice([0, 1]) if size > 1 and table is not tables[0] else 0
            each = [share_out(chance, max(1, size - by), dtypes)]
            each += [share_out(chance, chance.choice([size, 0, size // 2]), dtypes) for _ in range(1, ranks)]
            elements[-1].append(chance.sample(each, ranks))
    drawn = Drawn(True, dtypes, elements, [], draw_keys(chance, ranks, batch), batch, torch=batch > 0)
    drawn.carried = ranks == 1 and chance.random() < 0.5
    drawn.calls = list(draw_calls(chance, drawn))
    return drawn


def draw_shape(seed: str, bytes_: int, ranks: int, fields: int, batch: int, steps: int) -> Drawn:
    """Generate shapes of which each rank has `bytes_` bytes, in blocks of about the size of a threshold."""
    chance = random.Random(seed)
    dtypes = [*DTYPE[:fields]]
    each = [share_out(chance, bytes_, dtypes) for _ in range(ranks)]
    while not all(map(sum, zip(*each, strict=True))):  # each field has elements
        each = [share_out(chance, bytes_, dtypes) for _ in range(ranks)]
    drawn = Drawn(False, dtypes, [[each] * steps] * 2, [], draw_keys(chance, ranks, batch), batch)
    drawn.torch, drawn.carried = chance.random() < 0.3, ranks == 1 and chance.random() < 0.3
    drawn.calls = list(draw_calls(chance, drawn))
    return drawn


def draw_blocks(seed: int, blocks: int, most: int) -> Drawn:
    """Generate a job in which one rank of two puts `blocks` blocks of up to `most` bytes in each step."""
    chance = random.Random(seed)
    sizes = [chance.randint(1, most) for _ in range(blocks)]
    begins = list(accumulate(sizes, initial=0))
    drawn = Drawn(False, ["uint8"], [[[[begins[-1]], [most]]] * 4], [], draw_keys(chance, 2, 0), 0)
    for step in range(drawn.steps):
        for at, size in zip(begins, sizes, strict=False):
            drawn.calls.append((0, step, 0, 0, chance.choice([BLOCK, IPUT_BLOCK]), DTYPES["uint8"].number, at, size))
        drawn.calls.append((0, step, 1, 0, BLOCK, DTYPES["uint8"].number, begins[-1], most))
    return drawn


def write(folder: JobFolder, drawn: Drawn, program: Path, simulations: int) -> None:
    """Write the job, what the solvers put, and what the trainers must receive."""
    all_totals = [[drawn.totals(table, step) for step in range(drawn.steps)] for table in range(len(drawn.elements))]
    most = [max(totals[field] for table in all_totals for totals in table) for field in range(len(drawn.dtypes))]
    random_values = np.random.default_rng(1).integers(0, 256, PLACES + max(most), np.uint8)
    put = {call[5] for call in drawn.calls}  # some are converted
    for dtype in [dtype for dtype in DTYPE if dtype in drawn.dtypes or DTYPES[dtype].number in put]:
        values = random_values.astype(dtype)
        if dtype != "uint8":
            values[:-1] += 256 * values[1:]
        values.tofile(folder.path / f"values-{DTYPES[dtype].number}")
    fields = [{"dtype": dtype, "number": DTYPES[dtype].number, "varies": drawn.varies} for dtype in drawn.dtypes]
    spec = {"fields": fields, "places": PLACES, "elements": all_totals}
    (folder.path / "spec.json").write_text(json.dumps(spec))
    lines = [(len(drawn.elements), drawn.steps, PLACES), *drawn.calls]
    (folder.path / "calls.txt").write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
    keys = dict(drawn.keys)
    how = python("trainers/checks/check_thresholds.py", drawn.batch, "torch" if drawn.torch else "numpy")
    keys["trainers"] = keys["trainers"] | {"program": how}
    keys["solvers"] = keys["solvers"] | {"program": [str(program)]} | ({"carried": {}} if drawn.carried else {})
    keys["fields"] = {
        f"f{at}": {"dtype": dtype, "shape": [f"n{at}" if drawn.varies else most[at]]}
        for at, dtype in enumerate(drawn.dtypes)
    }
    if drawn.varies:
        keys["lengths"] = {f"n{at}": {"at_most": max(1, most[at])} for at in range(len(drawn.dtypes))}
    keys["parameters"] = {"count": simulations, "space": {"alpha": [0.0, 1.0]}}
    folder.job(**keys)


def run(folder: JobFolder, drawn: Drawn, build: Callable[[bool], Path], simulations: int = 12) -> Result:
    """Run the job, whose trainers compare every element; each sample has arrived and was drawn once."""
    write(folder, drawn, build(drawn.carried), simulations)
    result = folder.run(timeout=120)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    trainers = drawn.keys["trainers"]["ranks"]
    every = Counter(product(range(simulations), range(drawn.steps)))
    assert result.summary["samples"]["received"] == every.total()
    seen = Counter(tuple(step) for note in folder.read_notes("seen", trainers) for step in note)
    assert set(seen) <= set(every)
    if drawn.keys["buffer"]["policy"] != "reservoir":
        assert max(seen.values()) == 1 and len(seen) > every.total() - trainers * max(1, drawn.batch)
        if drawn.keys["samples"]["statistics"] and not drawn.batch:
            check_statistics(folder, result, drawn, simulations)
    return result


def check_statistics(folder: JobFolder, result: Result, drawn: Drawn, simulations: int) -> None:
    """The statistics cover all that was put."""
    assert result.run is not None
    written = json.loads((result.run / "statistics.json").read_text())["fields"]
    for field, dtype in enumerate(drawn.dtypes):
        values = np.fromfile(folder.path / f"values-{DTYPES[dtype].number}", dtype)
        arrays = []
        for simulation, step in product(range(simulations), range(drawn.steps)):
            begin = (simulation * 7919 + step * 613 + field * 131) % PLACES
            arrays.append(values[begin : begin + drawn.totals(simulation % len(drawn.elements), step)[field]])
        wanted, found = np.concatenate(arrays).astype(float), written[f"f{field}"]
        assert found["count"] == [wanted.size] and found["not_finite"] == [0]
        assert found["min"] == [wanted.min()] and found["max"] == [wanted.max()]
        assert np.allclose((found["mean"][0], found["std"][0]), (wanted.mean(), wanted.std()), rtol=1e-12)
