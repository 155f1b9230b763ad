"""Solver of the online demo: two species that react and diffuse, on 256 x 256 points."""

import numpy as np


def laplacian(u):
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u


def simulate(feed, kill):
    u = np.ones((256, 256))
    v = np.zeros((256, 256))
    v[112:144, 112:144] = 0.5
    for step in range(1, 21):
        for _ in range(20):
            reaction = u * v * v
            u += 0.16 * laplacian(u) - reaction + feed * (1 - u)
            v += 0.08 * laplacian(v) + reaction - (feed + kill) * v
        yield 20.0 * step, {"species": np.stack([u, v], axis=-1)}
