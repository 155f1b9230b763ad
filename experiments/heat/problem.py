"""The heat equation u_t = alpha (u_xx + u_yy) on the unit square with sides at fixed temperatures.

32 x 32 points, second-order differences in space, explicit Euler in time. Parameters are alpha, the initial temperature
and those of the left, right, bottom and top side, as in the study of the reservoir (Meyer et al., High Throughput
Training of Deep Surrogates from Large Ensemble Runs, SC 2023), with alpha added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

POINTS, STEPS, STEP_TIME = 32, 100, 0.005
_SUBSTEPS = 4  # alpha dt / h^2 is 0.136 at most; the scheme is stable up to 0.25
LOW = np.array([0.01, 100, 100, 100, 100, 100])
HIGH = np.array([0.1, 500, 500, 500, 500, 500])


def solve(parameters: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the temperatures, [n, 32, 32], after each of the 100 steps, for parameters [n, 6]."""
    alpha, initial, left, right, bottom, top = np.asarray(parameters, np.float32).T[:, :, None]
    u = np.empty((len(parameters), POINTS + 2, POINTS + 2), np.float32)
    u[:] = initial[:, :, None]
    u[:, 0, :], u[:, -1, :] = bottom, top
    u[:, :, 0], u[:, :, -1] = left, right
    factor = (alpha * STEP_TIME / _SUBSTEPS * (POINTS + 1) ** 2)[:, :, None]
    for _ in range(STEPS):
        for _ in range(_SUBSTEPS):
            around = u[:, 1:-1, :-2] + u[:, 1:-1, 2:] + u[:, :-2, 1:-1] + u[:, 2:, 1:-1]
            u[:, 1:-1, 1:-1] += factor * (around - 4 * u[:, 1:-1, 1:-1])
        yield u[:, 1:-1, 1:-1]


def simulate(
    alpha: float, initial: float, left: float, right: float, bottom: float, top: float, pace: float
) -> Iterator[tuple[float, dict[str, npt.NDArray[Any]]]]:
    """Run one simulation of the job, a step every `pace` seconds; it mostly sleeps, as if it ran on other nodes."""
    due = time.perf_counter()
    for step, u in enumerate(solve(np.array([[alpha, initial, left, right, bottom, top]])), start=1):
        due = max(due + pace, time.perf_counter() - pace)
        time.sleep(max(0.0, due - time.perf_counter()))
        yield step * STEP_TIME, {"temperature": u[0]}


def held_out(count: int, every: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Make held-out simulations: parameters [n, 6] and temperatures [n, steps, 32, 32], float32."""
    parameters = np.random.default_rng(20230611).uniform(LOW, HIGH, (count, 6))
    fields = [u.copy() for step, u in enumerate(solve(parameters), start=1) if step % every == 0]
    return parameters, np.stack(fields, axis=1)
