"""The questions of Python solvers to the model, and the checks of the answers; loop.c and loop.F90 do the same."""

import numpy as np
from loop.solving import OPTIONS

import mpidata


def ask(simulation: int, step: int, rank: int) -> None:
    """Ask one or two questions, at steps that follow from the seed and differ between ranks."""
    if (simulation * 7907 + step * 104723 + rank * 6151 + OPTIONS["seed"]) % 100 >= OPTIONS.get("asks", 0):
        return
    for number in range(1 + (simulation + step) % 2):
        rows = (simulation * 5 + step * 11 + rank * 3 + number * 7) % (OPTIONS["asked_rows"] + 1)
        places = 3 * np.arange(rows)[:, None] + np.arange(3)
        x = ((simulation * 7 + step * 3 + rank * 5 + number + places) % 1000).astype(np.float32)
        k = 1000000 * simulation + 1000 * step + np.arange(rows)
        y, numbers = np.full((rows, 3), np.nan, np.float32), ((rows,), "int64")
        found = mpidata.solver.infer({"x": x, "k": k}, {"y": y, "v": numbers, "call": numbers, "n": numbers})
        version = found.version
        assert version >= OPTIONS["first"], version
        assert found["y"] is y and (y == x * (version % 1000 + np.arange(3)) + 1).all(), (version, x, y)
        assert (found["v"] == k + version).all(), (version, k, found["v"])
        assert rows == 0 or (found["call"] == found["call"][0]).all(), found["call"]
        assert rows == 0 or (found["n"] == found["n"][0]).all() and found["n"][0] >= rows, (rows, found["n"])
