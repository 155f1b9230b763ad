"""The difficulty of simulations as a function of their parameters: a polynomial of second degree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["fit"]

Array = npt.NDArray[np.float64]
_RIDGES = np.logspace(-3, 4, 22)


def fit(points: Array, difficulty: Array, when: Array) -> Callable[[Array], Array]:
    """Fit a polynomial of second degree in the points and a trend along `when`; returns the polynomial.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        In the unit cube.
    difficulty, when : ndarray, shape (n,)

    Notes
    -----
    Kernel ridge regression, with the kernel (1 + x.y)^2 on [-1, 1]^d, so that its cost, n^3, hardly depends
    on d. The ridge is the one with the least generalized cross-validation (Golub, Heath, Wahba, Technometrics 21,
    1979): if the points explain nothing, all difficulties are nearly the same.
    """
    x, spread = 2 * points - 1, np.ptp(when)
    trend = (when - when.mean()) / (spread or 1.0)
    mean = difficulty.mean()
    values, vectors = np.linalg.eigh(_kernel(x, x) + np.outer(trend, trend))
    values, parts = np.maximum(values, 0.0), vectors.T @ (difficulty - mean)
    kept = _RIDGES[:, None] / (values + _RIDGES[:, None])  # by ridge: the residual of each component
    scores = (kept**2 @ parts**2) / kept.sum(axis=1) ** 2
    weights = vectors @ (parts / (values + _RIDGES[scores.argmin()]))
    return lambda at: mean + _kernel(2 * at - 1, x) @ weights


def _kernel(a: Array, b: Array) -> Array:
    kernel: Array = (1 + a @ b.T) ** 2
    return kernel
