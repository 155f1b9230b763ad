"""Burgers' equation, the Kuramoto-Sivashinsky equation and the Gray-Scott system, from a few parameters.

All are u_t = L u + N(u) on a periodic interval with 128 points, with L diagonal in Fourier space and N = -q (u^2 / 2)_x
in the first two. Products are dealiased by the two-thirds rule. The integrator is ETDRK4 (Kassam and Trefethen,
Fourth-Order Time-Stepping for Stiff PDEs, SIAM J. Sci. Comput. 26, 2005), whose coefficients are means over a circle.
The Gray-Scott system has two fields (Pearson, Complex Patterns in a Simple System, Science 261, 1993), the others one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Change = Callable[[Array], Array]
POINTS, STEPS = 128, 40
_WAVES = np.arange(POINTS // 2 + 1)
_X = 2 * np.pi * np.arange(POINTS) / POINTS
_KEPT = _WAVES <= POINTS // 3
_CIRCLE = np.exp(1j * np.pi * (np.arange(16) + 0.5) / 16)


@dataclasses.dataclass(frozen=True)
class Equation:
    """An equation.

    Attributes
    ----------
    space : dict of str to (float, float)
        Ranges of its parameters, in order.
    step_time : float
        Time between steps.
    substeps : int
        Substeps of the integrator in a step.
    linear, nonlinear, initial : callable
        From parameters [n, p]: L by wave number [n, fields, 65], N as a function of Fourier coefficients
        [n, fields, 65], and u at the start [n, fields, 128].
    seen : callable
        From parameters [n, p]: the surrogate's inputs for them, of the order of 1, [n, told].
    fields, told : int
    """

    space: dict[str, tuple[float, float]]
    step_time: float
    substeps: int
    linear: Callable[[Array], Array]
    nonlinear: Callable[[Array], Change]
    initial: Callable[[Array], Array]
    seen: Callable[[Array], Array]
    fields: int = 1
    told: int = 1


def _advection(speed: Array) -> Change:
    """Return -q (u^2 / 2)_x, for q [n or 1, 1, 1]."""
    factor = -0.5j * speed * _WAVES * _KEPT
    return lambda v: factor * np.fft.rfft(np.fft.irfft(v, POINTS) ** 2)


def _burgers_start(p: Array) -> Array:
    mean, first, second, phase = p[:, 1:].T[:, :, None, None]
    found: Array = mean + first * np.sin(_X) + second * np.sin(2 * _X + phase)
    return found


def _ks_start(p: Array) -> Array:
    first, second, third, phase = p[:, 1:].T[:, :, None, None]
    found: Array = first * np.sin(_X) + second * np.sin(2 * _X + phase) + third * np.sin(3 * _X - phase)
    return found


def _ks_linear(p: Array) -> Array:
    waves = _WAVES * 2 * np.pi / p[:, None, :1]
    found: Array = waves**2 - waves**4
    return found


# In units of the distance between neighbouring points. A pulse is about 15 wide.
_DIFFUSIVITIES = np.array([1.0, 0.5])[:, None]
_FIRST, _BETWEEN = 40, 24  # the first of the two initial bumps, and the distance to the second


def _gray_scott_start(p: Array) -> Array:
    height, width, second = p[:, 2:].T[:, :, None]
    at = np.arange(POINTS)
    bumps = np.exp(-(((at - _FIRST) / width) ** 2)) + second * np.exp(-(((at - _FIRST - _BETWEEN) / width) ** 2))
    return np.stack([1 - 0.5 * height * bumps, 0.5 * height * bumps], axis=1)


def _gray_scott_linear(p: Array) -> Array:
    feed, kill = p[:, :2].T
    waves = _WAVES * 2 * np.pi / POINTS
    found: Array = -_DIFFUSIVITIES * waves**2 - np.stack([feed, feed + kill], axis=1)[:, :, None]
    return found


def _gray_scott_reaction(p: Array) -> Change:
    feed = p[:, :1]

    def change(v: Array) -> Array:
        first, second = np.moveaxis(np.fft.irfft(v, POINTS), 1, 0)
        reaction = first * second**2
        return np.fft.rfft(np.stack([feed - reaction, reaction], axis=1)) * _KEPT

    return change


EQUATIONS = {
    "burgers": Equation(
        space={"log_viscosity": (-1.5, 0), "mean": (-1, 1), "first": (0, 2), "second": (0, 1), "phase": (0, 6.28)},
        step_time=0.05,
        substeps=5,
        linear=lambda p: -(10.0 ** p[:, None, :1]) * _WAVES**2,
        nonlinear=lambda p: _advection(np.ones((1, 1, 1))),
        initial=_burgers_start,
        seen=lambda p: p[:, :1] + 0.75,
    ),
    "kuramoto-sivashinsky": Equation(
        space={"length": (12, 36), "first": (0, 2), "second": (0, 2), "third": (0, 2), "phase": (0, 6.28)},
        step_time=0.25,
        substeps=10,
        linear=_ks_linear,
        nonlinear=lambda p: _advection(2 * np.pi / p[:, None, :1]),
        initial=_ks_start,
        seen=lambda p: p[:, :1] / 12 - 2,
    ),
    "gray-scott": Equation(
        space={"feed": (0.02, 0.06), "kill": (0.05, 0.065), "height": (0.5, 1), "width": (4, 10), "second": (0, 1)},
        step_time=20,
        substeps=10,
        linear=_gray_scott_linear,
        nonlinear=_gray_scott_reaction,
        initial=_gray_scott_start,
        seen=lambda p: (p[:, :2] - (0.04, 0.0575)) / (0.02, 0.0075),
        fields=2,
        told=2,
    ),
}


class _Integrator:
    """ETDRK4 for n simulations at once, in Fourier space."""

    def __init__(self, equation: Equation, parameters: Array) -> None:
        h = equation.step_time / equation.substeps
        linear = h * equation.linear(parameters)
        around = linear[..., None] + _CIRCLE
        e, e2 = np.exp(around), np.exp(around / 2)
        self._full, self._half = np.exp(linear), np.exp(linear / 2)
        self._q = h * ((e2 - 1) / around).mean(-1).real
        self._f1 = h * ((-4 - around + e * (4 - 3 * around + around**2)) / around**3).mean(-1).real
        self._f2 = h * ((2 + around + e * (around - 2)) / around**3).mean(-1).real
        self._f3 = h * ((-4 - 3 * around - around**2 + e * (4 - around)) / around**3).mean(-1).real
        self._nonlinear = equation.nonlinear(parameters)

    def substep(self, v: Array) -> Array:
        n = self._nonlinear(v)
        a = self._half * v + self._q * n
        n_a = self._nonlinear(a)
        b = self._half * v + self._q * n_a
        n_b = self._nonlinear(b)
        n_c = self._nonlinear(self._half * a + self._q * (2 * n_b - n))
        found: Array = self._full * v + self._f1 * n + 2 * self._f2 * (n_a + n_b) + self._f3 * n_c
        return found


def solve(equation: Equation, parameters: Array) -> Iterator[Array]:
    """Yield u, [n, fields, 128] float32, at the start and after each of the 40 steps, for parameters [n, p]."""
    integrator, u = _Integrator(equation, parameters), equation.initial(parameters)
    v = np.fft.rfft(u) * _KEPT
    for _ in range(STEPS):
        yield u.astype(np.float32)
        for _ in range(equation.substeps):
            v = integrator.substep(v)
        u = np.fft.irfft(v, POINTS)
    yield u.astype(np.float32)


def _simulate(name: str, pace: float, values: dict[str, float]) -> Iterator[tuple[float, dict[str, Array]]]:
    """Run one simulation of the job, a step every `pace` seconds; it partly sleeps, as if it ran on other nodes."""
    equation = EQUATIONS[name]
    due = time.perf_counter()
    for step, u in enumerate(solve(equation, np.array([list(values.values())]))):
        due = max(due + pace, time.perf_counter() - pace)
        time.sleep(max(0.0, due - time.perf_counter()))
        yield step * equation.step_time, {"u": u[0]}


def burgers(pace: float, **values: float) -> Iterator[tuple[float, dict[str, Array]]]:
    """Run a simulation of Burgers' equation."""
    return _simulate("burgers", pace, values)


def kuramoto_sivashinsky(pace: float, **values: float) -> Iterator[tuple[float, dict[str, Array]]]:
    """Run a simulation of the Kuramoto-Sivashinsky equation."""
    return _simulate("kuramoto-sivashinsky", pace, values)


def gray_scott(pace: float, **values: float) -> Iterator[tuple[float, dict[str, Array]]]:
    """Run a simulation of the Gray-Scott system."""
    return _simulate("gray-scott", pace, values)


def held_out(equation: Equation, count: int) -> tuple[Array, Array]:
    """Make held-out simulations, uniform in the space: parameters [n, p], u [n, 41, fields, 128]."""
    low, high = np.array(list(equation.space.values())).T
    parameters = np.random.default_rng(20241008).uniform(low, high, (count, len(low)))
    return parameters, np.stack(list(solve(equation, parameters)), axis=1)
